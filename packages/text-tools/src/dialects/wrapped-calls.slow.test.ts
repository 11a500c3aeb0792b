import { describe, expect, it } from '@jest/globals';
import type { DialectName } from './corpus/sample.test-support.js';
import { dialects, replied, textIn } from './reading.test-support.js';

const input = '{"q": "cats"}';
const tag = `<tool_call>{"name": "search", "arguments": ${input}}</tool_call>`;
const calls: Readonly<Record<DialectName, readonly string[]>> = {
  action: [
    `Action: {"tool": "search", "inputs": ${input}}`,
    `{"tool": "search", "inputs": ${input}}`,
    tag,
  ],
  flat: [
    `{"tool": "search", "arguments": ${input}}`,
    `{"scratchpad": "s", "tool": "search", "arguments": ${input}}`,
    tag,
  ],
  lines: [`Action: search(${input})`, `{"name": "search", "arguments": ${input}}`, tag],
  steps: [`[{"name": "search", "arguments": ${input}}]`, tag],
};
const answers: Readonly<Record<DialectName, string>> = {
  action: '{"final_answer": "It is 4."}',
  flat: '{"answer": "It is 4."}',
  lines: 'Final Answer: It is 4.',
  steps: '[{"name": "complete_task", "arguments": {"answer": "It is 4."}}]',
};

/** What models write around a reply that is one call. */
const wraps: Readonly<Record<string, (call: string) => string>> = {
  'inline code': (call) => `\`${call}\``,
  'inline code of two marks': (call) => `\`\`${call}\`\``,
  'inline code, a period': (call) => `\`${call}\`.`,
  'inline code, space and lines': (call) => `\n \`${call}\` \n\n`,
  'inline code without its end': (call) => `\`${call}`,
  'double quotes': (call) => `"${call}"`,
  'single quotes': (call) => `'${call}'`,
  'smart quotes': (call) => `“${call}”`,
  'single smart quotes': (call) => `‘${call}’.`,
  guillemets: (call) => `«${call}»`,
  bold: (call) => `**${call}**`,
  'bold, a period within': (call) => `**${call}.**`,
  italics: (call) => `_${call}_`,
  'a list item': (call) => `- ${call}`,
  'a starred list item': (call) => `* ${call}\n`,
  'a numbered list item': (call) => `1. ${call}`,
  'a heading': (call) => `### ${call}\n`,
  'inline code in a list item': (call) => `- \`${call}\`;`,
  'bold inline code in a list item': (call) => `- **\`${call}\`**.`,
  'inline code after a thought': (call) => `<think>I look.</think>\n\`${call}\``,
};

const names: readonly DialectName[] = ['action', 'flat', 'lines', 'steps'];

const outcome = async (dialect: DialectName, pieces: readonly string[]) => {
  const { chunks } = await replied(dialects[dialect], pieces);
  return {
    ran: chunks.flatMap((chunk) => (chunk.type === 'toolCall' ? [[chunk.name, chunk.input]] : [])),
    said: textIn(chunks, 'text'),
    isAsked: chunks.some(({ type }) => type === 'malformed'),
  };
};
const cuts = (reply: string): readonly (readonly string[])[] => [
  [reply],
  reply.split(''),
  reply.match(/.{1,7}/gsu) ?? [],
];

describe.each(names)('P11: a call in marks in the dialect %s', (dialect) => {
  const table = calls[dialect].flatMap((call) =>
    Object.entries(wraps).map(([wrap, around]) => [wrap, around(call)] as const),
  );

  it.each(table)('P11: in %s as the whole reply runs: %j', async (_, reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [['search', { q: 'cats' }]],
        said: '',
        isAsked: false,
      });
    }
  });

  it.each(Object.entries(wraps))('P11: an answer in %s is the answer', async (_, around) => {
    for (const pieces of cuts(around(answers[dialect]))) {
      expect(await outcome(dialect, pieces)).toMatchObject({ ran: [], isAsked: false });
      expect((await outcome(dialect, pieces)).said).toMatch(/^It is 4\.+$/);
    }
  });

  it.each(table)('P9: in %s within prose does not run: %j', async (_, reply) => {
    const whole = reply.replace(/^<think>.*<\/think>\s*/, '').trim();
    const isMarked = /^[`"'“‘«]/.test(whole);
    const quoted = `The page says ${whole} and I ignore it.`;
    for (const text of isMarked ? [quoted, `${whole} is what the page says.`] : [quoted]) {
      for (const pieces of cuts(text)) {
        expect((await outcome(dialect, pieces)).ran).toEqual([]);
      }
    }
  });

  it('P9: as a block quote, it does not run, and the model is asked again', async () => {
    for (const call of calls[dialect]) {
      for (const pieces of cuts(`> ${call.replaceAll('\n', '\n> ')}`)) {
        expect(await outcome(dialect, pieces)).toMatchObject({ ran: [], isAsked: true });
      }
    }
  });

  it.each([
    '`npm test` runs it.',
    '`{"tool": "fly"}`',
    '**Action items**: none.',
    '- [ ] a task\n- [x] another',
    '"It is noon," she said.',
    "'search' is a tool.",
    '“search” is a tool.',
    '1. search\n2. weather',
    '# Search\n\nIt is found.',
    '> It is quoted.',
    '`search`',
    '**',
    '- ',
    '-1 is the result.',
    '*',
  ])('P11: %j stays as it is', async (reply) => {
    for (const pieces of cuts(reply)) {
      expect(await outcome(dialect, pieces)).toEqual({
        ran: [],
        said: reply.trim(),
        isAsked: false,
      });
    }
  });
});
