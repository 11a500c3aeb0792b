import { describe, expect, it } from '@jest/globals';
import { parseToolCalls } from './index.js';
import { outcome, read } from './reading.test-support.js';
import { corpus, tools } from './samples.test-support.js';

/** Calls of declared tools that are the whole reply, on one line. */
const samples = Object.entries(corpus).flatMap(([family, rows]) =>
  rows.flatMap(([name, reply, { calls, text, thinking, refused, malformed }]) =>
    calls?.every(([called]) => tools.some((it) => it.name === called)) !== true ||
    [text, thinking, refused, malformed].some((it) => it !== undefined) ||
    /[\n`]|^\s|^[-*#>]/.test(reply.trim())
      ? []
      : [[`${family}, ${name}`, reply.trim(), calls] as const],
  ),
);

const wraps: Readonly<Record<string, (call: string) => string>> = {
  'inline code': (call) => `\`${call}\``,
  'inline code, a period': (call) => `\`\`${call}\`\`.\n`,
  'smart quotes': (call) => `“${call}”`,
  'single quotes': (call) => `'${call}'`,
  bold: (call) => `**${call}**`,
  'a list item': (call) => `- ${call}`,
  'a heading': (call) => `## ${call}`,
  'inline code in a list item': (call) => `1. \`${call}\`.`,
};

const result = async (pieces: readonly string[]) =>
  outcome((await read((model) => parseToolCalls(model), pieces)).chunks);

describe('P11: a call in marks in the formats of models', () => {
  it('P11: covers families', () => {
    expect(samples.length).toBeGreaterThan(10);
  });

  it.each(
    samples.flatMap(([name, reply, calls]) =>
      Object.entries(wraps).map(([wrap, around]) => [name, wrap, around(reply), calls] as const),
    ),
  )('P11: %s, in %s, as the whole reply: runs', async (_name, _wrap, reply, calls) => {
    expect(await result([reply])).toEqual({ calls });
    expect(await result(reply.split(''))).toEqual({ calls });
  });

  it.each(samples)('P9: %s, in a block quote: the model is asked again', async (_, reply) => {
    expect(await result([`> ${reply}`])).toMatchObject({
      malformed: expect.stringContaining('may be an example'),
    });
  });

  it.each(['`npm test` runs it.', '- a\n- b', '**Bold** text', '"It is noon," she said.'])(
    'P11: %j stays as it is',
    async (reply) => {
      expect(await result(reply.split(''))).toEqual({ text: reply });
    },
  );
});
