import { describe, expect, it } from '@jest/globals';
import type { DialectName } from './corpus/sample.test-support.js';
import { dialects, replied } from './reading.test-support.js';

/** The inputs that run after a reply; or that all are refused, or that the model is asked again. */
type Outcome = readonly string[] | 'refused' | 'asked';

const own: Readonly<Record<DialectName, (name: string, input: object) => string>> = {
  action: (name, inputs) => `Action: ${JSON.stringify({ tool: name, inputs })}`,
  flat: (name, input) => JSON.stringify({ tool: name, arguments: input }),
  lines: (name, input) => `Action: ${name}\nAction Input: ${JSON.stringify(input)}`,
  steps: (name, input) => JSON.stringify([{ name, arguments: input }]),
};
const tagged = (name: string, input: object): string =>
  `<tool_call>${JSON.stringify({ name, arguments: input })}</tool_call>`;
const fenced = (text: string): string => `\`\`\`json\n${text}\n\`\`\``;

const outcomeOf = async (dialect: DialectName, pieces: readonly string[]): Promise<Outcome> => {
  const { chunks } = await replied(dialects[dialect], pieces);
  if (chunks.some(({ type }) => type === 'malformed')) return 'asked';
  const calls = chunks.flatMap((chunk) => (chunk.type === 'toolCall' ? [chunk] : []));
  const ran = calls.filter(({ refusal }) => refusal === undefined);
  return ran.length === 0
    ? 'refused'
    : ran.map(({ name, input }) => `${name} ${JSON.stringify(input)}`);
};

const first = 'search {"q":"cats"}';
const second = 'search {"q":"dogs"}';
const both = [first, second];

/** Replies with a first action, and one that differs: what comes of them in a dialect of one action, and in one of lists. */
const forms: Readonly<
  Record<string, (a: string, b: string) => readonly [reply: string, one: Outcome, list: Outcome]>
> = {
  'one below the other': (a, b) => [`${a}\n${b}`, [first], both],
  'with text between': (a, b) => [`${a}\nNo, that is wrong.\n${b}`, 'asked', 'asked'],
  'with a thought between': (a, b) => [`${a}\nThought: no, dogs.\n${b}`, [first], 'asked'],
  'in two fences': (a, b) => [`${fenced(a)}\n${fenced(b)}`, [first], both],
  'in two fences with text between': (a, b) => [
    `${fenced(a)}\nOr better:\n${fenced(b)}`,
    'asked',
    'asked',
  ],
  'the first in a fence': (a, b) => [`${fenced(a)}\n${b}`, [first], both],
  'the last in a fence': (a, b) => [`${a}\n${fenced(b)}`, [first], both],
  'the first as an example in a fence': (a, b) => [
    `For example:\n${fenced(a)}\nBut I do this:\n${b}`,
    'asked',
    'asked',
  ],
  'the first in inline code': (a, b) => [
    `I could \`${a.replaceAll('\n', ' ')}\`, but:\n${b}`,
    [second],
    [second],
  ],
  'the first in a block quote': (a, b) => [
    `> ${a.replaceAll('\n', '\n> ')}\n\n${b}`,
    [second],
    [second],
  ],
  'the first in a thought': (a, b) => [`<think>${a}</think>\n${b}`, [second], [second]],
  'the first in a tag': (_, b) => [`${tagged('search', { q: 'cats' })}\n${b}`, [first], both],
  'the last in a tag': (a) => [`${a}\n${tagged('search', { q: 'dogs' })}`, [first], both],
  'both in tags': () => [
    `${tagged('search', { q: 'cats' })}\n${tagged('search', { q: 'dogs' })}`,
    [first],
    both,
  ],
  'three, the last one as the first': (a, b) => [
    `${a}\n${b}\n${a}`,
    [first],
    [first, second, first],
  ],
};

const names: readonly DialectName[] = ['action', 'flat', 'lines', 'steps'];

describe.each(names)('P6: several actions in the dialect %s', (dialect) => {
  const write = own[dialect];
  const [a, b] = [write('search', { q: 'cats' }), write('search', { q: 'dogs' })];
  const other = write('now', {});
  const isList = dialect === 'steps';
  const cuts = (reply: string) => [[reply], reply.split(''), reply.match(/[^]{1,7}/g) ?? []];

  it.each(Object.entries(forms))('P6: of one tool, %s', async (_, form) => {
    const [reply, one, list] = form(a, b);
    for (const pieces of cuts(reply)) {
      expect(await outcomeOf(dialect, pieces)).toEqual(isList ? list : one);
    }
  });

  it('P6: of other tools, the first runs, unless text of its own is between them', async () => {
    const all = isList ? [first, 'now {}'] : [first];
    for (const pieces of cuts(`${a}\n${other}`)) {
      expect(await outcomeOf(dialect, pieces)).toEqual(all);
    }
    for (const pieces of cuts(`${a}\nThought: and now.\n${other}`)) {
      expect(await outcomeOf(dialect, pieces)).toEqual(isList ? 'asked' : [first]);
    }
    for (const pieces of cuts(`${a}\nNo: first the time.\n${other}`)) {
      expect(await outcomeOf(dialect, pieces)).toEqual('asked');
    }
  });

  it('P6: that are the same, the first runs', async () => {
    for (const between of ['\n', '\nI repeat it:\n']) {
      for (const pieces of cuts(`${a}${between}${a}`)) {
        expect(await outcomeOf(dialect, pieces)).toEqual(isList ? [first, first] : [first]);
      }
    }
  });

  it('P6: of one tool, if the last one cannot be read, the model is asked again', async () => {
    for (const pieces of cuts(`${a}\n${b.slice(0, b.indexOf('dogs') + 2)}`)) {
      expect(await outcomeOf(dialect, pieces)).toEqual('asked');
    }
  });

  it('P6: in one line', async () => {
    for (const pieces of cuts(`${a} or ${b}`)) {
      expect(['asked', 'refused']).toContain(await outcomeOf(dialect, pieces));
    }
  });

  it('P6: one, and words after it, runs', async () => {
    for (const pieces of cuts(`${a}\nI wait for the result.`)) {
      expect(await outcomeOf(dialect, pieces)).toEqual([first]);
    }
  });
});
