import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { faultOf, faultOfBody } from './fault-of.js';

describe('faultOf', () => {
  it.each([
    [
      'OpenAI',
      { error: { message: 'm', type: 't', code: 'c', param: null } },
      { message: 'm', type: 't', code: 'c' },
    ],
    [
      'Anthropic',
      { type: 'error', error: { type: 't', message: 'm' }, request_id: 'r' },
      { type: 't', message: 'm' },
    ],
    ['Ollama', { error: 'm' }, { message: 'm' }],
    [
      'llama.cpp',
      { error: { code: 400, message: 'm', type: 't' } },
      { code: 400, message: 'm', type: 't' },
    ],
    [
      'Mistral',
      { object: 'error', message: 'm', type: 't', code: '3051' },
      { message: 'm', type: 't', code: '3051' },
    ],
    [
      'a stream of Responses',
      { type: 'error', code: 'c', message: 'm', sequence_number: 1 },
      { code: 'c', message: 'm' },
    ],
    [
      'Google',
      [{ error: { code: 429, message: 'm', status: 'RESOURCE_EXHAUSTED' } }],
      { code: 429, message: 'm', type: 'RESOURCE_EXHAUSTED' },
    ],
    [
      'OpenRouter',
      { error: { code: 502, message: 'm', metadata: { raw: 'why' } }, choices: [] },
      { code: 502, message: 'm: why' },
    ],
  ])('C7: reads the error of %s', (_, body, fault) => {
    expect(faultOf(body)).toEqual(fault);
  });

  it.each([
    [{ detail: 'm' }, { message: 'm' }],
    [{ detail: [{ msg: 'm' }] }, { message: 'm' }],
    [{ detail: { message: 'm', code: 'c' } }, { message: 'm', code: 'c' }],
    [{ error: { message: 'm' } }, { message: 'm' }],
  ])('C7: reads %j in the place of a stream', (body, fault) => {
    expect(faultOfBody(body)).toEqual(fault);
  });

  it('C4: reads the wait that Google asks for', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' }];
    expect(faultOf({ error: { code: 429, details } })).toMatchObject({ retryAfterMs: 34_500 });
    expect(faultOf({ error: { code: 1, details: [{ retryDelay: '-1s' }, null] } })).toEqual({
      code: 1,
    });
  });

  it.each([
    [{ error: null }],
    [{ type: 'response.completed', response: { error: null } }],
    [{ type: 'response.failed', response: { error: { code: 'server_error', message: 'm' } } }],
    [{ type: 'message_start', message: { role: 'assistant' } }],
    [{ code: 0, message: 'Success', choices: [] }],
    [{ error: '' }],
    [{ error: {} }],
    [{ error: true }],
    [{ error: { message: null, code: 0 } }],
    [{ type: 'progress', detail: 'Half of it' }],
    [{ detail: [{ msg: 'm' }] }],
    [{ choices: [{ error: 'm' }] }],
    [[]],
    ['error'],
    [null],
    [undefined],
  ])('finds no error in %j', (body) => {
    expect(faultOf(body)).toBeUndefined();
  });

  it('X1: throws for no body', () => {
    fc.assert(fc.property(fc.anything(), (body) => void faultOf(body)));
    fc.assert(fc.property(fc.anything(), (error) => void faultOf({ error })));
    fc.assert(fc.property(fc.anything(), (detail) => void faultOfBody({ detail })));
    const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(faultOf(deep)).toBeUndefined();
    expect(faultOfBody({ detail: deep })).toEqual({ message: '' });
  });
});
