import { describe, expect, it } from '@jest/globals';
import { failure } from './failure.js';
import { vendorErrors } from './vendor-errors.js';
import { vendorMessages } from './vendor-messages.test-support.js';

const codes = { context: 'contextTooLong', rate: 'rateLimited', refusal: 'refused' } as const;

describe('C7: the messages of vendors', () => {
  it.each(vendorMessages.map((it) => [it.kind, it.vendor, it] as const))(
    'C7: %s: %s',
    (kind, _, { text, seen, source }) => {
      expect(failure('Acme', { status: 400, message: text }).code).toBe(codes[kind]);
      expect(failure('Acme', { message: text }).code).toBe(codes[kind]);
      const raw = JSON.stringify({ error: { message: text, code: 400 } });
      expect(failure('Acme', { status: 400, message: `Provider error: ${raw}` }).code).toBe(
        codes[kind],
      );
      expect(seen).toMatch(/^(?:before )?20\d\d-(?:0[1-9]|1[0-2])$/);
      expect(seen.startsWith('before')).toBe(source === 'not recorded');
      expect(source === 'not recorded' || URL.canParse(source)).toBe(true);
    },
  );

  it('C7: covers the vendors that people use', () => {
    const all = vendorMessages.map(({ vendor }) => vendor).join(' ');
    for (const vendor of [
      'OpenAI',
      'Anthropic',
      'Gemini',
      'Mistral',
      'DeepSeek',
      'Groq',
      'Together',
      'vLLM',
      'Ollama',
      'llama.cpp',
      'OpenRouter',
      'Bedrock',
      'Azure',
    ])
      expect(all).toContain(vendor);
  });

  const quoting: readonly ((text: string) => string)[] = [
    (text) => `tools.0.custom.description: String should have at most 1024 characters: ${text}`,
    (text) =>
      `Invalid schema for function 'f': 'description': "${text.replaceAll('"', '')}" is not valid`,
    (text) =>
      `Invalid 'messages[3].content': the text "${text.replaceAll('"', '')}" is not an object`,
    (text) => `messages.4.content.0.tool_result: ${text}`,
  ];

  it.each(vendorMessages.map(({ kind, vendor, text }) => [kind, vendor, text] as const))(
    'C7: what an error quotes of the request is no %s: %s',
    (_, __, text) => {
      for (const quoted of quoting) {
        expect(failure('Acme', { status: 400, message: quoted(text) }).code).toBe('invalidRequest');
      }
    },
  );

  it.each([
    ['ThrottlingException', 'rateLimited', true],
    ['ValidationException', 'invalidRequest', false],
    ['modelStreamErrorException', 'server', true],
    ['ServiceUnavailableException', 'server', true],
    ['modelTimeoutException', 'timeout', true],
    ['1261', 'contextTooLong', false],
  ])('C7: %s, in a stream, is %s', (type, code, retryable) => {
    expect(failure('Acme', { type })).toMatchObject({ code, retryable });
  });

  it.each([
    'The maximum tokens you requested exceeds the model limit of 32768',
    'Invalid max_tokens value, the valid range of max_tokens is [1, 8192]',
    // docs.cohere.com/reference/errors
    'too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.',
  ])('C7: "%s" is about the answer', (message) => {
    expect(failure('Acme', { status: 400, message }).code).toBe('invalidRequest');
  });

  it.each(['Overloaded', 'The model is overloaded. Please try again later.'])(
    'C7: "%s" is a failure of the server, with and without a status',
    (message) => {
      for (const status of [undefined, 503, 529]) {
        const fault = status === undefined ? { message } : { status, message };
        expect(failure('Acme', fault)).toMatchObject({ code: 'server', retryable: true });
      }
    },
  );

  it('C7: has a message for each pattern', () => {
    for (const { kind, pattern } of vendorErrors) {
      const found = vendorMessages.some((it) => it.kind === kind && pattern.test(it.text));
      expect([pattern, found]).toEqual([pattern, true]);
    }
  });
});
