import { afterEach, describe, expect, it } from '@jest/globals';
import { type Citation, createAgent } from 'millrace';
import { finish, scriptedModel, text } from 'millrace/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { toAgUi } from './ag-ui/to-ag-ui.js';
import { toUiMessageStream } from './ai-sdk/to-ui-message-stream.js';
import { closeServers, serving } from './openai/client-of.test-support.js';

afterEach(closeServers);

const page: Citation = { url: 'https://example.com/snow', title: 'Snow', citedText: 'snow' };
const paper: Citation = {
  title: 'Paper',
  location: { unit: 'page', start: 2, end: 3 },
  vendorData: { vendor: 'Anthropic', data: { encrypted_index: 'EI' } },
};
const hostile: Citation = { url: 'javascript:alert(1)', title: 'Click' };

const answering = () =>
  createAgent({
    model: scriptedModel([
      text('It snows.'),
      ...[page, paper, hostile].map((citation) => ({ type: 'citation', citation }) as const),
      finish(),
    ]),
  }).stream$('?');

describe('the sources of an answer', () => {
  it('are source parts of the AI SDK: links only to pages', async () => {
    const chunks = await lastValueFrom(answering().pipe(toUiMessageStream(), toArray()));
    const sources = chunks.filter(({ type }) => type.startsWith('source-'));
    expect(sources).toMatchObject([
      { type: 'source-url', url: page.url, title: 'Snow' },
      { type: 'source-document', mediaType: 'application/pdf', title: 'Paper' },
      { type: 'source-document', title: 'Click' },
    ]);
    expect(new Set(sources.map((it) => 'sourceId' in it && it.sourceId)).size).toBe(3);
    // What only the vendor understands stays here.
    expect(JSON.stringify(chunks)).not.toContain('encrypted_index');
  });

  it('are AG-UI custom events', async () => {
    const events = await lastValueFrom(answering().pipe(toAgUi(), toArray()));
    const sources = events.filter((it) => 'name' in it && it.name === 'millrace.source');
    expect(sources.map((it) => 'value' in it && it.value)).toMatchObject([
      { citation: page },
      { citation: { title: 'Paper' } },
      { citation: hostile },
    ]);
  });

  const chunks = [
    text('It snows.'),
    ...[page, paper, hostile].map((citation) => ({ type: 'citation', citation }) as const),
    finish(),
  ];

  it('are annotations of a response, streamed and whole', async () => {
    const { client } = serving([chunks, chunks]);
    const request = { model: 'helper', input: 'Weather?' };
    const annotations = [
      { type: 'url_citation', url: page.url, title: 'Snow', start_index: 0, end_index: 9 },
      { type: 'file_citation', filename: 'Paper', index: 9 },
      { type: 'file_citation', filename: 'Click', index: 9 },
    ];
    const whole = await client.responses.create(request);
    expect(whole.output).toMatchObject([{ content: [{ text: 'It snows.', annotations }] }]);
    const events: unknown[] = [];
    for await (const event of await client.responses.create({ ...request, stream: true })) {
      if (event.type === 'response.output_text.annotation.added') events.push(event.annotation);
    }
    expect(events).toMatchObject(annotations);
  });

  it('are annotations of a chat completion: pages only', async () => {
    const { client } = serving([chunks, chunks]);
    const request = {
      model: 'helper',
      messages: [{ role: 'user' as const, content: 'Weather?' }],
    };
    const annotations = [{ type: 'url_citation', url_citation: { url: page.url, title: 'Snow' } }];
    const whole = await client.chat.completions.create(request);
    expect(whole.choices[0]?.message.annotations).toMatchObject(annotations);
    const deltas: unknown[] = [];
    for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
      const delta = chunk.choices[0]?.delta ?? {};
      if ('annotations' in delta) deltas.push(delta.annotations);
    }
    expect(deltas).toMatchObject([annotations]);
  });
});
