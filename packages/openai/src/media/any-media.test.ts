import { afterEach, describe, expect, it } from '@jest/globals';
import {
  type ContentBlock,
  createAgent,
  isEvent,
  type Message,
  type MillraceError,
  type ModelChunk,
  textOf,
} from 'millrace';
import { createCallStore, inProcessCalls, journal, replay$ } from 'millrace/journal';
import { sessions } from 'millrace/sessions';
import { listAt, textAt } from '@millrace/wire';
import fc from 'fast-check';
import { lastValueFrom } from 'rxjs';
import { chatReader } from '../chat-chunks.js';
import type { EndpointOptions } from '../options.js';
import { responsesReader } from '../responses-chunks.js';
import { openai, openrouter, profiles } from '../vendors.js';
import { anyMedia } from './any-media.js';
import { closeServers, serving, splitEvents } from './server.test-support.js';

afterEach(closeServers);

const png = 'iVBORw0KGgo=';
const image = { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: png } };
const ends = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const delta = (fields: object) => ({ choices: [{ index: 0, delta: fields, finish_reason: null }] });
const url = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } };

const source = { vendor: 'OpenAI', server: 'OpenAI', toolName: (name: string) => name };

const chatChunks = (
  events: readonly unknown[],
  options: EndpointOptions = {},
): readonly ModelChunk[] => {
  const reader = anyMedia.fromWire(chatReader(source), { ...source, options });
  return events.flatMap((data) => reader.read({ data }));
};

describe('the media of a chat completion', () => {
  it('X1: are images before the finish, at a URL or inline, streaming or whole', () => {
    const remote = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const chunks = [
      { type: 'text', text: 'Here:' },
      { type: 'block', block: image },
      {
        type: 'block',
        block: { type: 'image', source: { kind: 'url', url: remote.image_url.url } },
      },
      { type: 'facts', facts: { name: 'OpenAI', stopReason: 'stop' } },
      { type: 'finish', finish: 'stop' },
    ];
    expect(chatChunks([delta({ content: 'Here:', images: [url, remote] }), ends])).toEqual(chunks);
    const reader = anyMedia.fromWire(chatReader(source), { ...source, options: {} });
    const message = { content: 'Here:', images: [url, remote] };
    expect(reader.readWhole({ choices: [{ message, finish_reason: 'stop' }] })).toEqual(chunks);
  });

  it('X1: an image that is no image is an error', () => {
    const broken = { type: 'image_url', image_url: { url: 'file:///etc/passwd' } };
    expect(() => chatChunks([delta({ images: [broken] })])).toThrow('neither base64 nor at a URL');
  });

  it('X1: audio is one recording, however its bytes are split, and its transcript is text', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { minLength: 1 }), (parts) => {
        const events = parts.map((part, index) =>
          delta({ audio: { transcript: `${index} `, data: Buffer.from(part).toString('base64') } }),
        );
        const chunks = chatChunks([...events, ends], { body: { audio: { format: 'pcm16' } } });
        const bytes = Buffer.concat(parts);
        expect(chunks.filter((it) => it.type === 'text')).toHaveLength(parts.length);
        const block = chunks.find((it) => it.type === 'block')?.block;
        expect(block === undefined).toBe(bytes.length === 0);
        if (block === undefined) return;
        expect(block).toMatchObject({ type: 'audio', source: { mediaType: 'audio/wav' } });
        const wav = Buffer.from(textAt(block, 'source', 'data'), 'base64');
        expect(wav.subarray(0, 4).toString()).toBe('RIFF');
        expect(wav.readUInt32LE(40)).toBe(bytes.length);
        expect(wav.subarray(44)).toEqual(bytes);
      }),
      { numRuns: 50 },
    );
  });

  it('X6: audio over the cap is tooLarge before it is complete', () => {
    const audio = delta({ audio: { data: Buffer.alloc(60).toString('base64') } });
    expect(() => chatChunks([audio, audio], { caps: { eventLength: 100 } })).toThrow(
      'caps.eventLength',
    );
  });
});

const item = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: png };
const responseEvents = [
  { type: 'response.output_item.added', output_index: 0, item: { ...item, result: null } },
  { type: 'response.image_generation_call.partial_image', partial_image_b64: 'iVBO' },
  { type: 'response.output_item.done', output_index: 0, item, sequence_number: 5 },
  { type: 'response.output_item.done', output_index: 0, item, sequence_number: 5 },
  { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'A mill.' },
  { type: 'response.completed', response: { status: 'completed', output: [item] } },
];

describe('an image of the Responses API', () => {
  it('X1: is a block after its call, once, and its base64 is kept once', () => {
    const reader = anyMedia.fromWire(responsesReader(source), { ...source, options: {} });
    const chunks = responseEvents.flatMap((data) => reader.read({ data }));
    expect(chunks.map(({ type }) => type)).toEqual(['block', 'block', 'text', 'facts', 'finish']);
    expect(chunks[1]).toEqual({ type: 'block', block: image });
    expect(JSON.stringify(chunks[0])).not.toContain(png);
    const whole = anyMedia.fromWire(responsesReader(source), { ...source, options: {} });
    expect(
      whole.readWhole({ status: 'completed', output: [item] }).map(({ type }) => type),
    ).toEqual(['block', 'block', 'facts', 'finish']);
  });

  it('X8: survives a journal and a saved session, and returns to its call in the next request', async () => {
    const { baseURL, asked } = await serving((_, response) =>
      splitEvents(response, responseEvents, 7),
    );
    const calls = createCallStore(inProcessCalls());
    const open = () => {
      const model = openai.responses('gpt-5', { apiKey: 'k', baseURL, media: anyMedia });
      return sessions(createAgent({ model, use: [journal(calls)] })).open('s');
    };
    const chat = open();
    const reply = await chat.call('Draw a mill.', { callId: 'c' });
    expect(textOf(reply)).toBe('A mill.');
    expect(reply.content).toContainEqual(image);
    const replayed = await lastValueFrom(replay$(calls, 'c'));
    expect(JSON.stringify(replayed)).toContain(png);
    const saved = JSON.stringify(await chat.saveState());
    const later = open();
    await later.loadState(JSON.parse(saved));
    await later.call('Bluer.');
    const input = listAt(asked[1]?.body, 'input');
    expect(input).toContainEqual(item);
    expect(JSON.stringify(input).split(png)).toHaveLength(2);
  });
});

const question = (text: string): Message => ({
  id: text,
  role: 'user',
  content: [{ type: 'text', text }],
});

const path = '/chat/completions';
const painter = { profile: profiles.openrouter, model: 'm', path };
const blind = { profile: profiles.deepseek, model: 'm', path };

describe('generated media in later requests', () => {
  const answer: Message = {
    id: 'a',
    role: 'assistant',
    content: [
      { ...image, type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: png } },
    ],
  };
  const messages = [question('Draw.'), answer, question('Bluer.')];

  it('X8: are before the next question, the same objects each time', () => {
    const write = () =>
      anyMedia.toWire({ messages }, painter, { report: () => undefined }).messages;
    const [first, drawn, last] = write();
    expect(first).toBe(messages[0]);
    expect(drawn && textOf(drawn)).toBe('[You generated an image here.]');
    expect(last?.content.map(({ type }) => type)).toEqual(['text', 'image', 'text']);
    expect(write()[1]).toBe(drawn);
    expect(write()[2]).toBe(last);
  });

  it('X8: are a note for a vendor that takes none', () => {
    const sent = anyMedia.toWire({ messages }, blind, { report: () => undefined });
    expect(JSON.stringify(sent.messages)).not.toContain(png);
    expect(sent.messages[1]).toMatchObject({
      content: [{ text: '[You generated an image here, which you cannot see.]' }],
    });
  });

  it('X1: reach an OpenRouter model over a stream that is split anywhere', async () => {
    const events = [delta({ content: 'Here.', images: [url] }), ends];
    const { baseURL, asked } = await serving(({ nth }, response) =>
      splitEvents(response, events, nth),
    );
    const model = openrouter('google/gemini-2.5-flash-image', {
      apiKey: 'k',
      baseURL,
      media: anyMedia,
      body: { modalities: ['image', 'text'] },
    });
    const agent = createAgent({ model });
    const reply = await agent.call('Draw.');
    expect(reply.content.map(({ type }) => type)).toEqual(['text', 'image']);
    await agent.call([
      ...messages.slice(0, 1),
      { ...answer, content: reply.content },
      question('Bluer.'),
    ]);
    const sent = listAt(asked[1]?.body, 'messages');
    expect(listAt(sent.at(-1), 'content')[1]).toEqual(url);
  });

  it('X6: an image over the cap is tooLarge', async () => {
    const { baseURL } = await serving((_, response) =>
      splitEvents(response, [delta({ images: [url] }), ends], 50),
    );
    const caps = { eventLength: 60 };
    const model = openrouter('m', { apiKey: 'k', baseURL, media: anyMedia, caps });
    const error: unknown = await createAgent({ model })
      .call('Draw.')
      .catch((it: MillraceError) => it.code);
    expect(error).toBe('tooLarge');
  });
});

describe('media that a model does not accept', () => {
  it('X16: are left out, with a note for the model and one warning', async () => {
    const { baseURL, asked } = await serving((_, response) =>
      splitEvents(response, [delta({ content: 'OK.' }), ends], 99),
    );
    const audio = (mediaType: string): ContentBlock => ({
      type: 'audio',
      source: { kind: 'base64', mediaType, data: 'T2dnUw==' },
    });
    const given: Message = {
      id: 'q',
      role: 'user',
      content: [audio('audio/ogg'), audio('audio/wav'), { type: 'text', text: 'What is it?' }],
    };
    const model = openrouter('m', { apiKey: 'k', baseURL, media: anyMedia });
    const agent = createAgent({ model });
    const warnings: string[] = [];
    for (const turn of [1, 2]) {
      for await (const event of agent.stream([given])) {
        if (isEvent(event, 'warning')) warnings.push(`${turn}: ${event.message}`);
      }
    }
    expect(warnings[0]).toContain("it accepts wav and mp3, but not 'audio/ogg'. It was left out.");
    const [first, second] = listAt(listAt(asked[0]?.body, 'messages').at(-1), 'content');
    expect(textAt(first, 'text')).toMatch(/^\[Left out: The model 'm' does not accept/u);
    expect(textAt(second, 'type')).toBe('input_audio');
    expect(asked).toHaveLength(2);
  });

  it('X16: are left out of tool results, and of questions over the Responses API', () => {
    const source = { kind: 'base64', mediaType: 'audio/wav', data: 'AAAA' } as const;
    const results: Message = {
      id: 't',
      role: 'tool',
      content: [
        {
          type: 'tool_result',
          toolCallId: 'c',
          isError: false,
          content: [{ type: 'audio', source }],
        },
      ],
    };
    const reports: unknown[] = [];
    const context = { report: (it: unknown) => void reports.push(it) };
    const target = { profile: profiles.openai, model: 'm', path: '/responses' };
    const write = () => anyMedia.toWire({ messages: [results] }, target, context).messages;
    expect(write()[0]?.content[0]).toMatchObject({ content: [{ type: 'text' }] });
    expect(write()[0]).toBe(write()[0]);
    expect(reports).toHaveLength(1);
  });
});
