import { describe, expect, it } from '@jest/globals';
import { corpusTools } from './corpus/sample.test-support.js';
import type { Dialect } from './dialects.js';
import { createReader } from './reader.js';
import { dialects } from './reading.test-support.js';

describe('X1: hostile texts', () => {
  const seconds = (dialect: Dialect, it: string): number => {
    const begin = process.cpuUsage();
    const reader = createReader({
      dialect,
      tools: corpusTools,
      emit: () => undefined,
      mayAct: true,
      mayRetract: () => true,
    });
    for (let at = 0; at < it.length; at += 4_096) reader.push(it.slice(at, at + 4_096));
    reader.end();
    const { user, system } = process.cpuUsage(begin);
    return (user + system) / 1e6;
  };
  /** A name, and what is repeated, after and before what. */
  const hostile: readonly (readonly [string, string, string?, string?])[] = [
    ['opening quotes', '{"'],
    ['parameters', '<function=run>\n<parameter=code>x = 1; '],
    ['lines of JSON', 'So:\n{"name": "search", "arguments": {"q": "x"}}\n'],
    ['turns', '<|im_end|>\n<|im_'],
    ['backslashes', '{"answer": "\\t\\al '],
    ['labels', 'Action: '],
    ['labels on lines', 'Action: \n'],
    ['brackets', '['],
    ['braces', '{'],
    ['keys', '{"tool": '],
    ['lists of keys', '[{"name": "now", '],
    ['fences', '```\n'],
    ['fences of JSON', '```json\n{"tool": '],
    ['angles', '<'],
    ['tags', '<tool_call>'],
    ['think tags', '<think>'],
    ['function tags', '<function=now><parameter=q>'],
    ['backticks', '`'],
    ['spaces', ' '],
    ['lines', '\n'],
    ['backslashes', '\\'],
    ['an answer', 'Final Answer: a\n'],
    ['actions', 'Action: {"tool": "now"}\n'],
    ['inputs', 'Action: now\nAction Input: {}\n'],
    ['answers of JSON', '{"answer": "a"}\n'],
    ['thoughts', 'Thought: a\n'],
    ['comments', '{/*'],
    ['escapes', '{"answer": "\\u00'],
    ['colons', '{"tool":::::'],
    ['calls in prose', 'a\n{"name": "now", "arguments": {}}\n'],
    ['calls behind prose', 'a {"name": "now", "arguments": {}}\n'],
    ['names', 'Action: now\n\n'],
    ['ends of thoughts', 'a\n</think>\n'],
    ['ends of turns', '</s>'],
    ['spaces in inline code', ' ', '`{"tool": "now", "inputs": {"q": "', 'x"}}`.'],
    ['periods in a list item', '. ', '- {"tool": "now", "inputs": {"q": "', 'x"}}'],
    ['lines of a block quote', '\n> ', '> {"tool": "now", "inputs": ', '{}}'],
    ['marks in bold', '**', '**{"tool": "now", "inputs": {"q": "', 'x"}}**'],
    ['repeated keys', '{"tool": {"a": 1, "a": 1}, '],
  ];
  const dialectNames = Object.keys(dialects) as readonly (keyof typeof dialects)[];

  it.each(hostile)(
    'X1: %s take time that grows with their length',
    (_, piece, first = '', last = '') => {
      for (const name of dialectNames) {
        const make = (length: number): string =>
          first + piece.repeat(Math.ceil(length / piece.length)) + last;
        const [small, large] = [make(16_000), make(128_000)];
        seconds(dialects[name], small);
        // Eight times as much text: a square would take 64 times as long. A pause of the runtime's own does not come each time.
        const isLinear = [1, 2, 3].some(() => {
          const short = seconds(dialects[name], small);
          return seconds(dialects[name], large) < Math.max(24 * short, 0.5);
        });
        expect({ name, isLinear }).toEqual({ name, isLinear: true });
      }
    },
  );

  it('X1: a megabyte takes no more than seconds', () => {
    for (const piece of ['{"', 'Action: ']) {
      expect(seconds(dialects.action, piece.repeat(1_000_000 / piece.length))).toBeLessThan(20);
    }
  });
});
