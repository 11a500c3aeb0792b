import { afterEach, describe, expect, it } from '@jest/globals';
import { textOf } from 'millrace';
import { ask, chat, closeServers, type Make, oslo, responses } from './ask.test-support.js';
import type { Response } from './serve.test-support.js';
import {
  chatCall,
  chatStop,
  chatText,
  completed,
  completion,
  itemAdded,
  itemDone,
  messageItem,
  response,
  responseText,
} from './wire-events.test-support.js';

afterEach(closeServers);

const part = { item_id: 'm0', output_index: 0, content_index: 0 };
const refusalDelta = (delta: string): object => ({
  ...{ type: 'response.refusal.delta', delta },
  ...part,
});

describe('a refusal, which packages leave out', () => {
  it.each<[string, Make, Response]>([
    [
      'chat completions',
      chat,
      completion({ delta: { refusal: 'I ' } }, { delta: { refusal: 'cannot.' } }, chatStop),
    ],
    [
      'responses',
      responses,
      response(
        itemAdded(0, messageItem('m0')),
        refusalDelta('I '),
        refusalDelta('cannot.'),
        itemDone(0, messageItem('m0', { content: [{ type: 'refusal', refusal: 'I cannot.' }] })),
        completed(),
      ),
    ],
  ])('of %s ends the call as refused, with its text', async (_, make, refusing) => {
    const { reply, server } = await ask(make, [refusing]);
    expect(reply).toMatchObject({ reason: 'refused', text: 'I cannot.' });
    expect(server.bodies).toHaveLength(1);
  });

  it('counts in responses only once its message is complete', async () => {
    const done = itemDone(0, messageItem('m0'));
    const withdrawn = response(itemAdded(0, messageItem('m0')), refusalDelta('I '), done);
    const { reply } = await ask(responses, [withdrawn, responseText('It snows.')]);
    expect(reply?.reason).not.toBe('refused');
  });

  it('runs no tool beside it, and follows text', async () => {
    const text = { delta: { content: 'Well. ' } };
    const refusal = { delta: { refusal: 'I cannot.' } };
    const { reply, runs } = await ask(chat, [
      completion(text, chatCall(0, 'weather', oslo), refusal, chatStop),
    ]);
    expect(reply).toMatchObject({ reason: 'refused' });
    expect(reply && textOf(reply)).toBe('Well. I cannot.');
    expect(runs).toEqual([]);
  });

  it('that a package reads as text is shown once', async () => {
    const delta = { content: 'I cannot.', refusal: 'I cannot.' };
    const { reply } = await ask(chat, [completion({ delta }, chatStop)]);
    expect(reply).toMatchObject({ reason: 'refused', text: 'I cannot.' });
  });
});

describe('a tool call that the vendor cannot parse', () => {
  const error = {
    ...{ message: 'Failed to call a function.', type: 'invalid_request_error' },
    ...{ code: 'tool_use_failed', failed_generation: '<function=weather{"city"' },
  };
  const headers = { 'content-type': 'application/json' };

  it.each<[string, string, Response]>([
    [
      'the status of a response',
      ' (<function=weather',
      { status: 400, headers, frames: [JSON.stringify({ error })] },
    ],
    [
      // The package keeps the fields that it knows.
      'the first event of the stream',
      '. ',
      {
        headers: { 'content-type': 'text/event-stream' },
        frames: [`data: ${JSON.stringify({ error })}\n\n`],
      },
    ],
  ])('is asked for again: %s', async (_, written, failing) => {
    const { reply, server, runs } = await ask(chat, [failing, chatText('Done.')]);
    expect(reply && textOf(reply)).toBe('Done.');
    expect(server.bodies[1]).toContain(`could not be parsed${written}`);
    expect(runs).toEqual([]);
  });
});
