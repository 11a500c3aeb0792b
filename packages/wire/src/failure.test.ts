import { describe, expect, it } from '@jest/globals';
import { failure } from './failure.js';

describe('failure', () => {
  it.each([
    [400, 'invalidRequest', false],
    [401, 'auth', false],
    [402, 'rateLimited', false],
    [403, 'auth', false],
    [404, 'invalidRequest', false],
    [405, 'invalidRequest', false],
    [408, 'timeout', true],
    [409, 'conflict', true],
    [413, 'tooLarge', false],
    [418, 'unknown', false],
    [422, 'invalidRequest', false],
    [429, 'rateLimited', true],
    [302, 'redirect', false],
    [308, 'redirect', false],
    [500, 'server', true],
    [503, 'server', true],
    [529, 'server', true],
    [999, 'unknown', false],
  ])('C7: the status %i is %s', (status, code, retryable) => {
    expect(failure('Acme', { status })).toMatchObject({ code, retryable, status });
  });

  it.each([
    ['invalid_request_error', 'invalidRequest', false],
    ['authentication_error', 'auth', false],
    ['permission_error', 'auth', false],
    ['not_found_error', 'invalidRequest', false],
    ['request_too_large', 'tooLarge', false],
    ['rate_limit_error', 'rateLimited', true],
    ['rate_limit_exceeded', 'rateLimited', true],
    ['RESOURCE_EXHAUSTED', 'rateLimited', true],
    ['insufficient_quota', 'rateLimited', false],
    ['billing_error', 'rateLimited', false],
    ['api_error', 'server', true],
    ['server_error', 'server', true],
    ['overloaded_error', 'server', true],
    ['timeout_error', 'server', true],
    ['context_length_exceeded', 'contextTooLong', false],
    ['content_filter', 'refused', false],
    ['never_heard_of', 'server', true],
    ['__proto__', 'server', true],
  ])('C7: %s, reported in a stream, is %s', (word, code, retryable) => {
    expect(failure('Acme', { type: word })).toMatchObject({ code, retryable });
    expect(failure('Acme', { code: word })).toMatchObject({ code, retryable });
  });

  it.each([
    [429, 'rateLimited', true],
    ['429', 'rateLimited', true],
    [502, 'server', true],
    [403, 'auth', false],
  ])(
    'C7: a code that is the status %p counts as one, and is not shown as one',
    (given, code, retryable) => {
      const error = failure('Acme', { code: given });
      expect(error).toMatchObject({ code, retryable });
      expect(error.status).toBeUndefined();
    },
  );

  it.each([
    [429, 'insufficient_quota', 'rateLimited'],
    [403, 'billing_not_active', 'rateLimited'],
    [400, 'context_length_exceeded', 'contextTooLong'],
    [400, 'exceed_context_size_error', 'contextTooLong'],
    [400, 'content_policy_violation', 'refused'],
    [400, 'ResponsibleAIPolicyViolation', 'refused'],
    [400, 'rate_limit_error', 'invalidRequest'],
  ])('X4: the status %i with %s is %s, and sent once', (status, code, expected) => {
    expect(failure('Acme', { status, code })).toMatchObject({ code: expected, retryable: false });
  });

  it.each([
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
    'Your input exceeds the context window of this model.',
    'prompt is too long: 210000 tokens > 200000 maximum',
    "You passed 202753 input tokens and requested 0 output tokens. However, the model's context length is only 202752 tokens, resulting in a maximum input length of 202752 tokens.",
    "The input (200001 tokens) is longer than the model's context length (131072 tokens).",
    'Input is too long for requested model.',
    'Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)',
    'Prompt exceeds max length',
    'invalid params, context window exceeds limit (2013)',
    'too many tokens: total number of tokens in the prompt exceeds the limit of 128000',
    'prompt token count of 140000 exceeds the limit of 128000',
    'The request exceeds the maximum context window of this model.',
    'Input tokens exceed the configured limit: the prompt is too large for the model.',
    'Too many tokens in the prompt: 9000 > 8192',
    'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000',
    'The decoder prompt (length 93016) is longer than the maximum model length of 65536.',
    'The prompt (total length 25938) is too long to fit into the model (context length 4096).',
    'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
    'Please reduce the length of the messages or completion.',
    'The input token count (1189841) exceeds the maximum number of tokens allowed (1048575).',
    'the request exceeds the available context size. try increasing the context size',
    'the input length exceeds the context length',
    'The number of tokens to keep from the initial prompt is greater than the context length.',
    "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    'Range of input length should be [1, 30720]',
    '`inputs` tokens + `max_new_tokens` must be <= 4097.',
    'prompt is too long',
    'Prompt too long',
    'The model returned the following errors: Input is too long',
    'Input text is too long.',
    'messages are too long',
    'This conversation is too long to continue.',
    'messages: 210,000 tokens > 200,000 maximum',
    'messages: total length of 210000 tokens exceeds 200000',
    'The request has 210000 input tokens, and 210000 tokens is more than the maximum of 200000.',
    'Context window exceeded.',
    "The model's context length limit has been reached.",
  ])('C7: "%s" is a context that is too long', (message) => {
    expect(failure('Acme', { status: 400, message }).code).toBe('contextTooLong');
    expect(failure('Acme', { message }).code).toBe('contextTooLong');
    expect(failure('Acme', { status: 429, message }).code).toBe('rateLimited');
  });

  it.each([
    'Request too large for model in organization org on tokens per minute (TPM): Limit 6000, Requested 9000.',
    'Rate limit exceeded: too many tokens per minute.',
    'Too many tokens, please wait before trying again: 40000 tokens / min.',
    'This request would exceed the rate limit of 30,000 input tokens per minute.',
  ])('C7: "%s" is a limit of the rate, with any status', (message) => {
    for (const status of [400, 413, 422, 429]) {
      expect(failure('Acme', { status, message })).toMatchObject({
        code: 'rateLimited',
        retryable: true,
      });
    }
  });

  it.each([
    'The maximum number of tools is 128.',
    "The parameter 'max_tokens' is too large.",
    'Your limit of images per request is exceeded.',
    'The name of a tool is longer than 64 characters.',
    'max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for this model',
    'You asked for 9000 tokens > 8192 maximum output tokens.',
    'thinking.budget_tokens: 64000 tokens exceeds the maximum of 32000.',
    'tools.0.description: this text is too long.',
  ])('C7: "%s" says nothing of the context', (message) => {
    expect(failure('Acme', { status: 400, message }).code).toBe('invalidRequest');
  });

  it.each([
    ['x-should-retry on 400', 400, { 'x-should-retry': 'true' }, true],
    ['x-should-retry off 500', 500, { 'x-should-retry': 'false' }, false],
    ['x-should-retry of another word', 500, { 'x-should-retry': 'maybe' }, true],
  ])('X4: %s is obeyed', (_, status, headers, retryable) => {
    expect(failure('Acme', { status, headers: new Headers(headers) })).toMatchObject({ retryable });
  });

  it('C4: the headers say for how long to wait, else the body', () => {
    const headers = new Headers({ 'retry-after': '3' });
    expect(failure('Acme', { status: 429, headers, retryAfterMs: 9 })).toMatchObject({
      retryAfterMs: 3_000,
    });
    expect(failure('Acme', { status: 429, retryAfterMs: 9 })).toMatchObject({ retryAfterMs: 9 });
  });

  it('X9: a redirect names only the origin', () => {
    const headers = new Headers({ location: 'https://user:pass@other.example/v1?key=1' });
    const { message } = failure('Acme', { status: 307, headers });
    expect(message).toContain('redirects to https://other.example (');
    expect(message).not.toMatch(/user|pass|key=/);
  });

  it('C7: 404 names the path that was requested, and not the query', () => {
    const url = 'https://acme.example/v1/v1/messages?key=1';
    expect(failure('Acme', { status: 404, url }).message).toBe(
      "Acme does not know the model or the URL (404). The path was /v1/v1/messages. Check the model's name and the base URL.",
    );
    expect(failure('Acme', { status: 400, url }).message).not.toContain('/v1');
  });

  it('X10: cuts no secret in half', () => {
    const message = `${'x '.repeat(245)}sk-1234567890`;
    expect(failure('Acme', { status: 400, message }).message).not.toContain('sk-');
  });

  it('says who, what and how to put it right, in one line', () => {
    expect(
      failure('Acme', { status: 401, type: 'a', code: 'b', message: 'bad\n  key' }).message,
    ).toBe(
      'Acme rejected the credentials (401, a, b): bad key. Check the API key and its permissions.',
    );
    expect(failure('Acme', { status: 502, message: '<html>' }).message).toBe('Acme failed (502).');
    expect(failure('Acme', { message: 'x'.repeat(9_999) }).message.length).toBeLessThan(600);
  });
});
