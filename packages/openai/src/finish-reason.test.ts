import { describe, expect, it } from '@jest/globals';
import { finishChunks } from './finish-reason.js';

const read = (reason: string, refused = false, hasCalls = false) =>
  finishChunks(reason, { server: 'Mine', refused, hasCalls });

describe('a finish reason', () => {
  it.each([
    ['stop', 'stop'],
    ['STOP', 'stop'],
    ['eos', 'stop'],
    ['length', 'length'],
    ['MAX_TOKENS', 'length'],
    ['model_length', 'length'],
    ['content_filter', 'filtered'],
    ['content_filter: SAFETY', 'filtered'],
    ['SAFETY', 'filtered'],
    ['recitation', 'filtered'],
    ['blocklist', 'filtered'],
    ['PROHIBITED_CONTENT', 'filtered'],
    ['spii', 'filtered'],
    ['sensitive', 'filtered'],
    ['refusal', 'refusal'],
  ])('X1: %s is a finish by %s', (reason, finish) => {
    expect(read(reason)).toEqual([{ type: 'finish', finish }]);
  });

  it.each(['tool_calls', 'TOOL_CALLS', 'tool_call', 'tool_use', 'function_call'])(
    'X2: %s asks the model again, unless there is a call or a refusal',
    (reason) => {
      const stop = { type: 'finish', finish: 'stop' };
      expect(read(reason, false, true)).toEqual([stop]);
      expect(read(reason)).toMatchObject([{ type: 'malformed', isAnswer: false }, stop]);
      expect(read(reason, true)).toEqual([{ type: 'finish', finish: 'refusal' }]);
    },
  );

  it.each(['', ' ', 'null', 'NULL'])('X1: %j is not an answer', (reason) => {
    expect(read(reason)).toEqual([]);
  });

  it.each([
    'abort',
    'aborted',
    'cancelled',
    'canceled',
    'ERROR',
    'OTHER',
    'insufficient_system_resource',
    'network_error',
  ])('X1: %s is a failure that may pass', (reason) => {
    expect(() => read(reason)).toThrow(
      expect.objectContaining({ code: 'server', retryable: true }),
    );
    expect(() => read(reason)).toThrow(new RegExp(reason, 'u'));
  });

  it.each([
    'malformed_function_call',
    'MALFORMED_FUNCTION_CALL',
    'function_call_filter: MALFORMED_FUNCTION_CALL',
    'function_call_filter: UNEXPECTED_TOOL_CALL',
  ])('X8: %s is reported to the model', (reason) => {
    expect(read(reason)).toEqual([
      { type: 'malformed', feedback: expect.stringContaining(reason) },
      { type: 'finish', finish: 'stop' },
    ]);
  });

  it('X2: voids the tool calls before one that cannot be parsed', () => {
    expect(read('malformed_function_call', false, true)).toMatchObject([
      { type: 'restart' },
      { type: 'malformed' },
      { type: 'finish' },
    ]);
    expect(read('stop', false, true)).toEqual([{ type: 'finish', finish: 'stop' }]);
  });

  it('is a refusal if the model refused', () => {
    expect(read('stop', true)).toEqual([{ type: 'finish', finish: 'refusal' }]);
  });
});
