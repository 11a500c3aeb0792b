import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { faultOf } from './fault-of.js';

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
    ['FastAPI', { detail: 'm' }, { message: 'm' }],
    ['FastAPI, a list', { detail: [{ msg: 'm' }] }, { message: 'm' }],
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
    ['nothing but a mark', { error: {} }, {}],
  ])('C7: reads the error of %s', (_, body, fault) => {
    expect(faultOf(body)).toEqual(fault);
  });

  it('C4: reads the wait that Google asks for', () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' }];
    expect(faultOf({ error: { code: 429, details } })).toMatchObject({ retryAfterMs: 34_500 });
    expect(faultOf({ error: { details: [{ retryDelay: '-1s' }, null] } })).toEqual({});
  });

  it.each([
    [{ error: null }],
    [{ type: 'response.completed', response: { error: null } }],
    [{ type: 'response.failed', response: { error: { code: 'server_error', message: 'm' } } }],
    [{ type: 'message_start', message: { role: 'assistant' } }],
    [{ code: 0, message: 'Success', choices: [] }],
    [{ error: '' }],
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
    const deep: unknown = JSON.parse('['.repeat(100_000) + ']'.repeat(100_000));
    expect(faultOf(deep)).toBeUndefined();
    expect(faultOf({ detail: deep })).toEqual({ message: '' });
  });
});
