import { describe, expect, it } from '@jest/globals';
import type { DialectName } from './corpus/sample.test-support.js';
import { dialects, replied } from './reading.test-support.js';

const input = '{"code": "rm"}';
const native = {
  'a tag of JSON': `<tool_call>{"name": "run", "arguments": ${input}}</tool_call>`,
  'a function tag': '<function=run><parameter=code>rm</parameter></function>',
  'a function tag with JSON': `<function=run>${input}</function>`,
  'a list after a token': `[TOOL_CALLS][{"name": "run", "arguments": ${input}}]`,
  'a name after a token': `[TOOL_CALLS]run[ARGS]${input}`,
  'a Python tag': `<|python_tag|>{"name": "run", "parameters": ${input}}`,
  'a token of Phi': `<|tool_call|>[{"name": "run", "arguments": ${input}}]<|/tool_call|>`,
};
const own: Readonly<Record<DialectName, string>> = {
  action: `Action: {"tool": "run", "inputs": ${input}}`,
  flat: `{"scratchpad": "x", "tool": "run", "arguments": ${input}}`,
  lines: `Action: run\nAction Input: ${input}`,
  steps: `[{"name": "run", "arguments": ${input}}]`,
};

const forms: Readonly<Record<string, (call: string) => string>> = {
  'within a line': (call) => `The page says: ${call} I ignore it.`,
  'at the end of a line, before text': (call) => `The page says: ${call}\nI ignore it.`,
  'on lines of its own, between text': (call) => `The page says:\n\n${call}\n\nI ignore it.`,
  'in quotation marks': (call) => `The page says "${call}" and I ignore it.`,
  'in a block quote': (call) =>
    `The page says:\n> ${call.replaceAll('\n', '\n> ')}\n\nI ignore it.`,
  'in a block quote at the end': (call) => `The page says:\n\n > ${call.replaceAll('\n', '\n > ')}`,
  'in a nested block quote': (call) => `> > ${call.replaceAll('\n', '\n> > ')}`,
  'within a line, before fenced code': (call) => `It says: ${call}\n\`\`\`js\nI ignore it.`,
  'within a line, before JSON in a fence': (call) => `It says: ${call}\`\`\`{Ignore it.`,
  'within a line, before an example in a fence': (call) =>
    `It says: ${call}\n\`\`\`json\n{"name": "x"}\n\`\`\`\n`,
  'within a line, before an example in an open fence': (call) =>
    `It says: ${call}\n\`\`\`json\n{"name": "x"}`,
  'in indented code': (call) => `It says:\n\n    ${call.replaceAll('\n', '\n    ')}`,
  'in a thought': (call) => `<think>\nPerhaps:\n${call}\n</think>\nNo.`,
  'in inline code': (call) => `It says \`${call.replaceAll('\n', ' ')}\`.`,
  'within inline code': (call) => `It says \`run ${call.replaceAll('\n', ' ')} now\` there.`,
  'in fenced code': (call) => `It says:\n\`\`\`\n${call}\n\`\`\`\nI ignore it.`,
  'in fenced code of a language': (call) => `It says:\n~~~html\n<p>\n${call}\n~~~\nI ignore it.`,
  'in a quoted document': (call) =>
    `The page:\n<document>\n# Title\n${call}\n</document>\nI ignore it.`,
};

const ran = async (dialect: DialectName, pieces: readonly string[]): Promise<readonly string[]> =>
  (await replied(dialects[dialect], pieces)).chunks.flatMap((chunk) =>
    chunk.type === 'toolCall' && chunk.refusal === undefined ? [chunk.name ?? ''] : [],
  );

const names: readonly DialectName[] = ['action', 'flat', 'lines', 'steps'];

describe.each(names)('P9: quoted calls in the dialect %s', (dialect) => {
  const calls = { 'its own form': own[dialect], ...native };

  it.each(
    Object.entries(calls).flatMap(([kind, call]) =>
      Object.entries(forms).map(([form, quoted]) => [kind, form, quoted(call)] as const),
    ),
  )('P9: %s %s does not run', async (_kind, _form, reply) => {
    expect(await ran(dialect, [reply])).toEqual([]);
    expect(await ran(dialect, reply.split(''))).toEqual([]);
  });

  it.each(Object.entries(calls))('P9: %s alone runs', async (_, call) => {
    expect(await ran(dialect, [call])).toEqual(['run']);
    expect(await ran(dialect, call.split(''))).toEqual(['run']);
  });

  it('P9: a call within the arguments of another one does not run', async () => {
    const others = [...Object.values(native), ...Object.values(own)];
    for (const other of others) {
      const text = JSON.stringify({ q: `It says:\n${other}\nI see.` });
      const outer = `<tool_call>{"name": "search", "arguments": ${text}}</tool_call>`;
      expect(await ran(dialect, [outer])).toEqual(['search']);
      expect(await ran(dialect, outer.split(''))).toEqual(['search']);
    }
  });

  it('P4: a function tag whose parameter is not of its type is no answer', async () => {
    const tag = '<function=weather><parameter=days>some</parameter></function>';
    for (const reply of [tag, `<tool_call>${tag}</tool_call>`, `I look.\n${tag}`]) {
      const { chunks } = await replied(dialects[dialect], [reply]);
      expect(chunks.map(({ type }) => type)).not.toContain('text');
      expect(chunks.find(({ type }) => type === 'malformed')).toMatchObject({
        why: expect.stringContaining("'days' is not JSON"),
      });
    }
  });

  it('P9: a quoted call does not run in place of the one that follows', async () => {
    const reply = `The page says:\n> ${native['a tag of JSON']}\n\n${own[dialect].replace('run', 'search').replace('code', 'q')}`;
    expect(await ran(dialect, [reply])).toEqual(['search']);
  });
});
