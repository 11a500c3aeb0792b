import { describe, expect, it } from '@jest/globals';
import { parseToolCalls } from './index.js';
import { outcome, read } from './reading.test-support.js';
import { corpus } from './samples.test-support.js';

const parsed = (model: Parameters<typeof parseToolCalls>[0]) => parseToolCalls(model);

describe.each(Object.entries(corpus))('P3: %s', (_, samples) => {
  it.each(samples)('%s', async (_name, reply, expected) => {
    const { chunks } = await read(parsed, [reply]);
    expect(outcome(chunks)).toEqual(expected);
  });
});
