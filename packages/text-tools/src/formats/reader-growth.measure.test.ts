import { describe, expect, it } from '@jest/globals';
import { formats, thinkingTags } from './formats.js';
import { createReader } from './reader.js';
import { tools } from './samples.test-support.js';

const seconds = (reply: string): number => {
  const begin = process.cpuUsage();
  const reader = createReader({
    tags: thinkingTags,
    formats,
    isOpened: false,
    hasBareJson: true,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    emit: () => undefined,
    emitCall: () => undefined,
    mayRetract: () => true,
  });
  for (let at = 0; at < reply.length; at += 1_024) reader.push(reply.slice(at, at + 1_024));
  reader.end(true);
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1e6;
};

const hostile = [
  '<',
  '<think>',
  '</think>\n',
  '`',
  '```\n',
  '~',
  ' ',
  '\n',
  '[',
  '{"',
  '<tool_call>',
  '<tool_call>{',
  '<tool_call>{"',
  'a <tool_call>{"name": "x"}',
  '<tool_call>{"a": "</tool_call>',
  '<tool_call>now',
  '<tool_call>now<arg_key>',
  '<function=now>',
  '<function=now><parameter=q>',
  '<parameter=q>',
  'now(',
  '[now(',
  'now(a=',
  'now()\n',
  'now(a="',
  '[now(a=[',
  'now(a=1,',
  '[TOOL_CALLS]',
  '[TOOL_CALLS][{',
  '[TOOL_CALLS][{}, ',
  'now[ARGS]',
  '<|channel|>',
  '<|channel|>analysis<|message|>',
  '<|start|>assistant',
  '<|channel|>commentary to=functions.now<|message|>{}',
  '<｜tool▁call▁begin｜>',
  '<｜tool▁call▁begin｜>now<｜tool▁sep｜>{',
  '<|START_ACTION|>[',
  'Action: now(',
  '"',
  '\\',
  '{"a": ',
  '<tool_call>{"name": "now", "arguments": {"a": ',
  '<|python_tag|>{"name": "now"};',
];

describe('X1: hostile replies take time that grows with their length', () => {
  it.each(hostile)('X1: %j', (piece) => {
    const make = (length: number): string => piece.repeat(Math.ceil(length / piece.length));
    const [small, large] = [make(3_000), make(24_000)];
    seconds(small);
    // Eight times as much text: a square would take 64 times as long.
    const isLinear = [1, 2, 3].some(() => seconds(large) < Math.max(24 * seconds(small), 0.15));
    expect(isLinear).toBe(true);
  });

  it('X1: in marks around the whole reply', () => {
    for (const mark of ['`', '**', '“', '- ', '> ', '- `']) {
      for (const piece of [' ', '. ', '\n> ', '**', '<tool_call>{']) {
        const call = `<tool_call>{"name": "run", "arguments": {"code": "${piece.repeat(64_000 / piece.length)}x"}}`;
        expect(seconds(`${mark}${call}</tool_call>`)).toBeLessThan(2);
      }
    }
  });

  it('X1: after a first mark that is not closed', () => {
    for (const first of [
      '<tool_call>{"name": "run", "arguments": {"code": "',
      '<function=run><parameter=code>',
      '[run(code="',
      '<think>',
    ]) {
      for (const piece of ['<tool_call>{', '</parameter>', '"', '[run(', '</think', '{"a":']) {
        expect(seconds(first + piece.repeat(64_000 / piece.length))).toBeLessThan(2);
      }
    }
  });

  it('X15: hostile nesting and keys end in an error, and pollute nothing', () => {
    const calls: unknown[] = [];
    const reader = createReader({
      tags: thinkingTags,
      formats,
      isOpened: false,
      hasBareJson: true,
      tools: new Map(tools.map((tool) => [tool.name, tool])),
      emit: () => undefined,
      emitCall: (call) => calls.push(call),
      mayRetract: () => true,
    });
    reader.push(`<|python_start|>[weather(city=${'['.repeat(100_000)})]<|python_end|>\n`);
    reader.push(
      '<tool_call>weather<arg_key>__proto__</arg_key><arg_value>{"polluted": true}</arg_value></tool_call>',
    );
    reader.end(true);
    expect(calls).toEqual([
      { name: 'weather', problem: 'Its arguments are nested too deeply.' },
      expect.objectContaining({ name: 'weather' }),
    ]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
