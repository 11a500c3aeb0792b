import { describe, expect, it } from '@jest/globals';
import { type Citation, createAgent } from '@millrace/core';
import { finish, scriptedModel, text } from '@millrace/core/testing';
import { lastValueFrom, toArray } from 'rxjs';
import { toAgUi } from './ag-ui/to-ag-ui.js';
import { toUiMessageStream } from './ai-sdk/to-ui-message-stream.js';

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

  it('are custom events of AG-UI', async () => {
    const events = await lastValueFrom(answering().pipe(toAgUi(), toArray()));
    const sources = events.filter((it) => 'name' in it && it.name === 'millrace.source');
    expect(sources.map((it) => 'value' in it && it.value)).toMatchObject([
      { citation: page },
      { citation: { title: 'Paper' } },
      { citation: hostile },
    ]);
  });
});
