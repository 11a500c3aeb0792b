import { describe, expect, it } from '@jest/globals';
import { createAgent, type Model, type ModelChunk } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { concatMap, filter, take } from 'rxjs';
import { agUiResponse, type OpenCall, uiMessageStreamResponse } from './index.js';

const calling = (): OpenCall => {
  const agent = createAgent({ model: scriptedModel([text('Hi.')]) });
  return (demand) => agent.stream$('?', { demand, callId: 'c' });
};

describe('a response', () => {
  it('is the whole stream, with the headers and the end of its protocol', async () => {
    const chat = uiMessageStreamResponse(calling());
    expect(chat.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    expect(await chat.text()).toMatch(
      /^data: \{"type":"start","messageId":"c"\}\n\n[^]*\n\ndata: \[DONE\]\n\n$/,
    );
    const run = agUiResponse(calling(), { runId: 'r' });
    expect(run.headers.get('content-type')).toBe('text/event-stream');
    expect(await run.text()).toMatch(
      /^data: \{"type":"RUN_STARTED"[^]*"reason":"answer"[^]*\}\n\n$/,
    );
  });

  it('starts its call when it is read, not earlier', async () => {
    let opened = 0;
    const open: OpenCall = (demand) => {
      opened += 1;
      return calling()(demand);
    };
    const response = agUiResponse(open);
    await response.body?.cancel();
    expect(opened).toBe(0);
    await agUiResponse(open).text();
    expect(opened).toBe(1);
  });

  it('sends strings that are emitted together as one chunk, and reads no further than a slow client', async () => {
    let sent = 0;
    const model: Model = {
      name: 'eager',
      stream$: (_, { demand }) =>
        demand.open$.pipe(
          filter(Boolean),
          concatMap(function* (): Generator<ModelChunk> {
            for (; demand.isOpen && sent < 1_000; sent += 1) yield { type: 'text', text: 'word ' };
            if (sent === 1_000) yield { type: 'finish', finish: 'stop' };
          }),
          take(1_001),
        ),
    };
    const agent = createAgent({ model });
    const body = uiMessageStreamResponse((demand) => agent.stream$('?', { demand })).body;
    const chunks: string[] = [];
    for await (const chunk of body ?? []) {
      // The first deltas wait for the first read.
      if (chunks.length === 1) expect(sent).toBeLessThan(100);
      chunks.push(new TextDecoder().decode(chunk));
    }
    expect(chunks.join('').split('"delta":"word "')).toHaveLength(1_001);
    expect(chunks.length).toBeGreaterThan(1_000 / 16);
    expect(chunks.length).toBeLessThan(1_000 / 8);
  });

  it('refuses invalid sources and unknown options immediately', () => {
    expect(() => agUiResponse('?' as unknown as OpenCall)).toThrow(/'open' must be a function/);
    expect(() => uiMessageStreamResponse(calling(), { targets: 6 } as object)).toThrow(/'targets'/);
  });
});
