import { describe, expect, it } from '@jest/globals';
import { createAgent, MillraceError, tool } from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { NEVER, Subject, throwError } from 'rxjs';
import { chatServer } from './index.js';

const asking = (question: string): Request =>
  new Request('http://localhost/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: 'a',
      messages: [{ role: 'user', parts: [{ type: 'text', text: question }] }],
    }),
  });

const serving = (run: () => unknown, model = scriptedModel([toolCall('wait'), finish()])) => {
  const began$ = new Subject<void>();
  const began = new Promise<void>((resolve) => began$.subscribe({ next: resolve }));
  const wait = tool({
    name: 'wait',
    description: 'Waits.',
    run: () => {
      began$.next();
      return run();
    },
  });
  const errors: string[] = [];
  const server = chatServer(createAgent({ name: 'helper', model, tools: [wait] }), {
    maxBytes: 2_500,
    onError: ({ code }) => void errors.push(code),
  });
  return { server, errors, began };
};

describe('a server that closes', () => {
  it.each([0, 50])('reports no error of the calls that it cuts, after %i ms', async (timeoutMs) => {
    const { server, errors, began } = serving(() => NEVER);
    const answer = (await server.respond(asking('?'))).text();
    await began;
    await server.close({ timeoutMs });
    expect(await answer).toContain('"type":"abort"');
    expect(errors).toEqual([]);
  });

  it('still reports other errors of its calls', async () => {
    const failing = {
      name: 'failing',
      stream$: () => throwError(() => new MillraceError('refused', 'No.', { retryable: false })),
    };
    const { server, errors } = serving(() => NEVER, { ...scriptedModel([text('')]), ...failing });
    const answer = (await server.respond(asking('?'))).text();
    const closed = server.close({ timeoutMs: 50 });
    await Promise.all([answer, closed]);
    expect(errors).toEqual(['refused']);
  });
});

describe('a request that is too large', () => {
  it('gets the size that is accepted', async () => {
    const { server } = serving(() => NEVER);
    const response = await server.respond(asking('x'.repeat(3_000)));
    expect([response.status, await response.json()]).toEqual([
      413,
      {
        error: 'The request is too large: up to 2.5 kB are accepted.',
        code: 'invalidRequest',
      },
    ]);
    await server.close();
  });
});
