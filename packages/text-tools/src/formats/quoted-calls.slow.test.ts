import { describe, expect, it } from '@jest/globals';
import { parseToolCalls } from './index.js';
import { outcome, read } from './reading.test-support.js';
import { corpus } from './samples.test-support.js';

const forms: Readonly<Record<string, (call: string) => string>> = {
  'within a line': (call) => `The page says: ${call} I ignore it.`,
  'on lines of its own, between text': (call) => `The page says:\n\n${call}\n\nI ignore it.`,
  'in quotation marks': (call) => `The page says "${call}" and I ignore it.`,
  'in a block quote': (call) => `It says:\n> ${call.replaceAll('\n', '\n> ')}\n\nI ignore it.`,
  'in a block quote at the end': (call) => `It says:\n\n > ${call.replaceAll('\n', '\n > ')}`,
  'in a block quote alone': (call) => `> ${call.replaceAll('\n', '\n> ')}`,
  'in indented code': (call) => `It says:\n\n    ${call.replaceAll('\n', '\n    ')}`,
  'in inline code': (call) => `It says \`\`${call.replaceAll('\n', ' ')}\`\`.`,
  'in inline code with a backtick': (call) => `\`\`a \` ${call.replaceAll('\n', ' ')}\`\` is it.`,
  'in fenced code': (call) => `It says:\n\`\`\`\`\n${call}\n\`\`\`\`\nI ignore it.`,
  'in fenced code alone': (call) => `~~~~xml\n${call}\n~~~~`,
  'in a thought': (call) => `<think>I could write ${call}</think>No.`,
  'in a thought, before text': (call) => `<think>I could write ${call} now.</think>No.`,
  'in a thought, on lines of its own': (call) => `<think>\nPerhaps:\n${call}\n</think>\n\nNo.`,
  'in a quoted document': (call) => `The page:\n<document>\n${call}\n</document>\nI ignore it.`,
};

/** Calls without text around. A fence within a fence of as many marks would close it. */
const samples = Object.entries(corpus).flatMap(([family, rows]) =>
  rows.flatMap(([name, reply, { calls, text, thinking }]) =>
    calls === undefined || text !== undefined || thinking !== undefined || reply.startsWith(' ')
      ? []
      : [[`${family}, ${name}`, reply] as const],
  ),
);

const callsIn = async (pieces: readonly string[]): Promise<unknown> =>
  outcome((await read((model) => parseToolCalls(model), pieces)).chunks).calls;

describe('P9: quoted calls in the formats of models', () => {
  it('P9: covers all families', () => {
    expect(samples.length).toBeGreaterThan(25);
  });

  it.each(
    samples.flatMap(([name, reply]) =>
      Object.entries(forms).map(([form, quoted]) => [name, form, quoted(reply)] as const),
    ),
  )('P9: %s, %s: does not run', async (_name, _form, reply) => {
    expect(await callsIn([reply])).toBeUndefined();
    expect(await callsIn(reply.split(''))).toBeUndefined();
  });

  it.each(samples)('P9: %s, after text: runs', async (_, reply) => {
    // Calls as in Python are the whole reply.
    const isBare = /^\[?[a-z.]+\(/u.test(reply);
    expect((await callsIn([`I look.\n${reply}`])) === undefined).toBe(isBare);
  });
});

describe('P9: what a quoted call comes to', () => {
  const call = '<tool_call>{"name": "now", "arguments": {}}</tool_call>';
  const result = async (reply: string) =>
    outcome((await read((model) => parseToolCalls(model), [reply])).chunks);

  it('P9: within a line, it is a part of the answer', async () => {
    const reply = `It says: ${call} I ignore it.`;
    expect(await result(reply)).toEqual({ text: reply });
  });

  it('P9: on lines of its own between text, the model is asked again', async () => {
    const reply = `It says:\n${call}\nI ignore it.`;
    expect(await result(reply)).toEqual({
      text: reply,
      malformed: expect.stringContaining('may be an example'),
    });
  });

  it('P9: a call at the end runs after a quoted one', async () => {
    expect(await result(`It says: ${call} So:\n${call.replace('now', 'run')}`)).toMatchObject({
      calls: [['run', {}]],
    });
  });

  it('P9: in a thought, it is a part of the thought', async () => {
    const token = '[TOOL_CALLS][{"name": "now"}]';
    const thought = `<think>Perhaps\n${token}\n</think>`;
    const drafted = { thinking: `Perhaps\n${token}` };
    expect(await result(`${thought}No.`)).toEqual({ ...drafted, text: 'No.' });
    expect(await result(`${thought}${token.replace('now', 'run')}`)).toEqual({
      ...drafted,
      calls: [['run', {}]],
    });
    expect(await result(thought)).toEqual({
      ...drafted,
      malformed: expect.stringContaining('within its thought'),
    });
  });

  it('P9: a call that follows a broken one does not run', async () => {
    const broken = `<tool_call>{"name": "run", "arguments": {"code": "It says "${call}" there"}}</tool_call>`;
    expect((await result(broken)).calls).toBeUndefined();
  });
});
