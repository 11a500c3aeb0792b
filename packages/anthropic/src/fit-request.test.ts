import { describe, expect, it } from '@jest/globals';
import type { ModelRequest } from 'millrace';
import { fitRequest } from './fit-request.js';

describe('a request that the API takes', () => {
  it.each<[Partial<ModelRequest>, boolean, Partial<ModelRequest>, readonly string[]]>([
    [{ toolChoice: 'required' }, true, {}, [`'toolChoice' while it thinks`]],
    [{ toolChoice: { name: 'a' } }, true, {}, [`'toolChoice' while it thinks`]],
    [{ toolChoice: 'none' }, true, { toolChoice: 'none' }, []],
    [{ toolChoice: 'required' }, false, { toolChoice: 'required' }, []],
    [{ temperature: 1 }, true, {}, [`'temperature' while it thinks`]],
    [{ temperature: 1 }, false, { temperature: 1 }, []],
    [{ temperature: 1.1 }, false, {}, [`'temperature' above 1`]],
    [
      { stopSequences: ['\n', 'END'] },
      false,
      { stopSequences: ['END'] },
      [`blank 'stopSequences'`],
    ],
    [{ system: 'Be brief.', maxTokens: 3 }, true, { system: 'Be brief.', maxTokens: 3 }, []],
  ])('of %j, with thinking %j, is %j', (options, isThinking, expected, dropped) => {
    expect(fitRequest({ ...options, messages: [] }, isThinking)).toEqual({
      request: { ...expected, messages: [] },
      dropped,
    });
  });
});
