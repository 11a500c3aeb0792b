import { describe, expect, it } from '@jest/globals';
import type { ModelRequest } from '@millrace/core';
import { fitRequest } from './fit-request.js';

const adaptive = { type: 'adaptive' };

describe('a request that the API takes', () => {
  it.each<[Partial<ModelRequest>, unknown, Partial<ModelRequest>, readonly string[]]>([
    [{ toolChoice: 'required' }, adaptive, {}, [`'toolChoice' while it thinks`]],
    [{ toolChoice: { name: 'a' } }, { type: 'enabled' }, {}, [`'toolChoice' while it thinks`]],
    [{ toolChoice: 'none' }, adaptive, { toolChoice: 'none' }, []],
    [{ toolChoice: 'required' }, { type: 'disabled' }, { toolChoice: 'required' }, []],
    [{ temperature: 1 }, adaptive, {}, [`'temperature' while it thinks`]],
    [{ temperature: 1 }, undefined, { temperature: 1 }, []],
    [{ temperature: 1.1 }, undefined, {}, [`'temperature' above 1`]],
    [
      { stopSequences: ['\n', 'END'] },
      undefined,
      { stopSequences: ['END'] },
      [`'stopSequences' of nothing but white space`],
    ],
    [{ system: 'Be brief.', maxTokens: 3 }, adaptive, { system: 'Be brief.', maxTokens: 3 }, []],
  ])('of %j with %j is %j', (options, thinking, expected, dropped) => {
    expect(fitRequest({ ...options, messages: [] }, thinking)).toEqual({
      request: { ...expected, messages: [] },
      dropped,
    });
  });
});
