import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { type ChatProtocol, chatServer } from './index.js';

/** A server with a protocol that refuses requests with a header, and bodies with a field. */
const refusing = () => {
  const asserted: unknown[] = [];
  const refusal = (): MillraceError =>
    new MillraceError('refused', 'Not from here.', { status: 403, userMessage: 'Not from here.' });
  const protocol: ChatProtocol = Object.assign(() => [], {
    assert: ({ headers }: Request, body?: unknown) => {
      asserted.push(body);
      if (headers.has('x-refused')) throw refusal();
      if (typeof body === 'object' && body !== null && 'refused' in body) throw refusal();
    },
  });
  const model = scriptedModel([text('Hello.')]);
  const users: string[] = [];
  const { respond } = chatServer(createAgent({ name: 'helper', model }), {
    protocols: [protocol],
    user: () => {
      users.push('ann');
      return 'ann';
    },
  });
  const ask = (more: object, headers: Readonly<Record<string, string>> = {}) =>
    respond(
      new Request('http://localhost/api/chat', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify({
          ...{ id: 'a', messages: [{ role: 'user', parts: [{ type: 'text', text: '?' }] }] },
          ...more,
        }),
      }),
    );
  return { ask, asserted, users, model };
};

describe('what a protocol refuses', () => {
  it('is not answered by any route: a request before its user is asked for, a body before its call', async () => {
    const { ask, asserted, users, model } = refusing();
    const byRequest = await ask({}, { 'x-refused': '1' });
    expect([byRequest.status, users, asserted]).toEqual([403, [], [undefined]]);
    const byBody = await ask({ refused: true });
    expect([byBody.status, await byBody.json()]).toEqual([
      403,
      { error: 'Not from here.', code: 'refused' },
    ]);
    expect(model.requests).toHaveLength(0);
    expect(await (await ask({})).text()).toContain('Hello.');
    expect(model.requests).toHaveLength(1);
  });
});
