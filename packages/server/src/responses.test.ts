import { describe, expect, it } from '@jest/globals';
import { createAgent } from '@millrace/core';
import { scriptedModel, text } from '@millrace/core/testing';
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

  it('begins its call when somebody reads it, and not before', async () => {
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

  it('refuses what is no call, and options that do not exist, at once', () => {
    expect(() => agUiResponse('?' as unknown as OpenCall)).toThrow(/'open' must be a function/);
    expect(() => uiMessageStreamResponse(calling(), { targets: 6 } as object)).toThrow(/'targets'/);
  });
});
