import { describe, expect, it } from '@jest/globals';
import type { Message, ModelRequest } from 'millrace';
import { at, encodeSignature, listAt } from '@millrace/wire';
import { chatRequest } from './chat-request.js';
import { assistant, picture, results, use, user } from './conversation.test-support.js';
import { fieldsOf } from './fields.js';
import { type Profile, unsupportedBy } from './profile.js';
import { toolIds } from './tool-ids.js';
import { embeddings } from './embeddings/index.js';
import { endpoint } from './endpoint.js';
import { imageGenerator, textToSpeech, transcription } from './media/index.js';
import { of } from 'rxjs';
import { openai, profiles } from './vendors.js';

const bodyOf = (profile: Profile, request: ModelRequest) => {
  const toolId = toolIds(request.messages, profile.toolIds);
  const write = chatRequest({ profile, model: 'm' });
  return fieldsOf(JSON.parse(write(request, { toolName: (name) => name, toolId })));
};

const messagesOf = (profile: Profile, ...messages: readonly Message[]): readonly unknown[] =>
  listAt(bodyOf(profile, { messages }), 'messages');

const tool = (name: string) => ({ name, description: name, inputSchema: { type: 'object' } });

const limited = { messages: [user('Hi')], maxTokens: 9 };

describe('the profile of', () => {
  it.each([
    ['openai', 'max_completion_tokens'],
    ['azure', 'max_completion_tokens'],
    ['groq', 'max_completion_tokens'],
    ['snowflake', 'max_completion_tokens'],
    ['mistral', 'max_tokens'],
    ['ollama', 'max_tokens'],
    ['vllm', 'max_tokens'],
  ] as const)('X8: %s limits an answer by %s', (vendor, field) => {
    expect(bodyOf(profiles[vendor], limited)).toHaveProperty(field, 9);
  });

  it.each([
    ['openai', null],
    ['azure', null],
    ['gemini', null],
    ['groq', null],
    ['openrouter', null],
    ['qwen', ''],
    ['vllm', ''],
    ['ollama', ''],
  ] as const)('X8: %s gets tool calls alone with the content %j', (vendor, content) => {
    expect(messagesOf(profiles[vendor], assistant(use('c1')))[0]).toHaveProperty(
      'content',
      content,
    );
  });

  it('X8: mistral is asked for nothing that it does not know', () => {
    const named: Message = {
      id: 'u',
      role: 'user',
      name: 'ada',
      content: [{ type: 'text', text: 'Hi' }],
    };
    expect(bodyOf(profiles.mistral, { ...limited, messages: [named] })).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'ada: Hi' }],
      max_tokens: 9,
      stream: true,
    });
  });

  it('X8: mistral gets media within tool messages, and no user after them', () => {
    const drew: Message = {
      id: 't',
      role: 'tool',
      content: [{ type: 'tool_result', toolCallId: 'call_1', content: [picture], isError: false }],
    };
    expect(
      messagesOf(profiles.mistral, assistant(use('call_1')), drew, user('And?')),
    ).toMatchObject([
      { role: 'assistant', tool_calls: [{ id: '000000001' }] },
      {
        role: 'tool',
        tool_call_id: '000000001',
        content: [{ type: 'text' }, { type: 'image_url' }],
      },
      { role: 'assistant', content: 'OK.' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it('X8: mistral gets a mark that the last message is to be continued', () => {
    expect(messagesOf(profiles.mistral, assistant('One'), user('Hi'), assistant('Two'))).toEqual([
      { role: 'assistant', content: 'One' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Two', prefix: true },
    ]);
    expect(messagesOf(profiles.mistral, user('Hi'), assistant('Two'), assistant(''))).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Two', prefix: true },
    ]);
  });

  it('X8: deepseek wants the thinking before tool calls back, and no other', () => {
    const thought = { type: 'thinking', text: 'Hm.' } as const;
    const messages = [
      assistant(thought, use('c1')),
      results(['c1', 'rain']),
      assistant(use('c2')),
      results(['c2', 'rain']),
      assistant(thought, 'It rains.'),
    ];
    const assistants = messagesOf(profiles.deepseek, ...messages).filter(
      (it) => (it as { role: string }).role === 'assistant',
    );
    expect(assistants).toMatchObject([{ reasoning_content: 'Hm.' }, { reasoning_content: '' }, {}]);
    expect(assistants[2]).toEqual({ role: 'assistant', content: 'It rains.' });
  });

  it('X8: openrouter gets reasoning details back as they were said', () => {
    const details = [{ type: 'reasoning.encrypted', data: 'x', index: 0 }];
    const thought = {
      type: 'thinking',
      text: 'Hm.',
      signature: encodeSignature('OpenRouter', 'reasoning_details', details),
    } as const;
    const message = assistant(thought, use('c1'));
    expect(messagesOf(profiles.openrouter, message)).toMatchObject([
      { reasoning_details: details },
    ]);
    expect(messagesOf(profiles.openai, message)[0]).not.toHaveProperty('reasoning_details');
  });

  it('X8: gemini gets the signature of a call back in its place', () => {
    const extra = { google: { thought_signature: 'sig' } };
    const signed = {
      type: 'thinking',
      text: '',
      signature: encodeSignature('Gemini', 'extra_content', extra),
    } as const;
    const calls = (message: Message) =>
      listAt(messagesOf(profiles.gemini, message)[0], 'tool_calls');
    expect(calls(assistant(signed, use('c1'), use('c2')))).toMatchObject([
      { id: 'c1', extra_content: extra },
      { id: 'c2' },
    ]);
    expect(calls(assistant(signed, use('c1'), use('c2')))[1]).not.toHaveProperty('extra_content');
    // A call that another vendor made has none.
    expect(calls(assistant(use('c1'), use('c2')))).toMatchObject([
      { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } },
      {},
    ]);
  });

  it.each(['llamaCpp', 'lmStudio'] as const)(
    'X8: %s is forced to a tool by being offered no other',
    (vendor) => {
      const request = {
        messages: [user('Hi')],
        tools: [tool('a'), tool('b')],
        toolChoice: { name: 'b' },
      };
      expect(bodyOf(profiles[vendor], request)).toMatchObject({
        tools: [{ function: { name: 'b' } }],
        tool_choice: 'required',
      });
    },
  );

  it('X8: another vendor may say that it takes a developer, and strict tools', () => {
    const profile = { name: 'Mine', systemRole: 'developer', strictTools: true } as const;
    const closed = { type: 'object', properties: {}, additionalProperties: false };
    const request = {
      messages: [user('Hi')],
      system: 'Be brief.',
      tools: [{ ...tool('a'), inputSchema: closed }, tool('b')],
    };
    const body = bodyOf(profile, request);
    expect(listAt(body, 'messages')[0]).toEqual({ role: 'developer', content: 'Be brief.' });
    expect(listAt(body, 'tools').map((it) => at(it, 'function', 'strict'))).toEqual([
      true,
      undefined,
    ]);
  });

  it('X8: another vendor may want fields in every request', () => {
    expect(bodyOf({ name: 'Mine', body: { enable_thinking: true } }, limited)).toHaveProperty(
      'enable_thinking',
      true,
    );
  });
});

describe('an error', () => {
  const makes = Object.entries(profiles).filter(([vendor]) => vendor !== 'openai');
  it.each(makes)('of %s names no model and no function of OpenAI', (_, profile) => {
    const vendor = endpoint(profile);
    const wrong = [
      () => vendor('m', { reasoningSummary: 'auto' } as object),
      () => vendor(''),
      () => vendor.responses(''),
      () => embeddings(profile, ''),
      () => textToSpeech(profile, ''),
      () => transcription(profile, '', { load$: () => of('') } as never),
      () => imageGenerator(profile, ''),
    ];
    for (const make of wrong) {
      expect(make).toThrow(profile.name);
      expect(make).not.toThrow(/openai\.|gpt-|text-embedding/u);
    }
  });
});

describe('unsupported options', () => {
  it.each([
    ['openai', 'gpt-4.1', []],
    ['openai', 'gpt-5-chat-latest', []],
    ['openai', 'gpt-5-mini', ['temperature', 'stopSequences']],
    ['openai', 'gpt-5.1-codex', ['temperature', 'stopSequences']],
    ['openai', 'o4-mini', ['temperature', 'stopSequences']],
    ['azure', 'o3', ['temperature', 'stopSequences']],
    ['deepseek', 'deepseek-chat', ['outputSchema']],
    ['deepseek', 'deepseek-reasoner', ['outputSchema', 'toolChoice']],
    ['ollama', 'qwen3', ['toolChoice']],
    ['groq', 'llama', ['outputSchema']],
    ['azure', 'gpt-35-turbo', []],
    ['azure', 'gpt-35-turbo-16k', []],
    ['openai', 'gpt-3.5-turbo', []],
    ['openai', 'gpt-10', ['temperature', 'stopSequences']],
    ['openai', 'ft:o4-mini-2025-04-16:acme::a1', ['temperature', 'stopSequences']],
    ['openai', 'ft:gpt-5-mini:acme:chat-bot:a1', ['temperature', 'stopSequences']],
    ['openai', 'ft:gpt-4o-mini:acme:o1:a1', []],
  ] as const)('X8: of %s %s', (vendor, model, expected) => {
    expect(unsupportedBy(profiles[vendor], model)).toEqual(expected);
  });

  it('X8: are fewer for a model that is asked not to think', () => {
    expect(unsupportedBy(profiles.openai, 'gpt-5.1', 'none')).toEqual(['stopSequences']);
    expect(unsupportedBy(profiles.openai, 'gpt-5.1', 'low')).toEqual([
      'temperature',
      'stopSequences',
    ]);
    const options = { apiKey: 'k', reasoningEffort: 'none' } as const;
    for (const make of [openai, openai.responses]) {
      expect(make('gpt-5.2', options).unsupported).toEqual(['stopSequences']);
    }
  });

  it('X8: of a vendor that nothing is known of', () => {
    expect(unsupportedBy({ name: 'Mine' }, 'm')).toEqual(['outputSchema']);
  });

  it('R3: are declared by the model, so that the core works around them', () => {
    expect(openai('gpt-4.1', { apiKey: 'k' }).unsupported).toEqual([]);
    expect(openai.responses('gpt-5', { apiKey: 'k' }).unsupported).toEqual([
      'temperature',
      'stopSequences',
    ]);
  });
});
