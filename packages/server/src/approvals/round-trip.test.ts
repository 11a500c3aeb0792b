import { serve } from '@hono/node-server';
import { describe, expect, it } from '@jest/globals';
import { createAgent, requireApproval, tool, type Verdict } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { jsonSchema } from 'millrace/schema';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { Hono } from 'hono';
import { once } from 'node:events';
import { agUiResponse, uiMessageStreamResponse } from '../index.js';
import { type ApprovalQueue, approvalsHandler } from './index.js';
import { queueOf, waitingNow } from './asking.test-support.js';

/** An agent that asks before it pays, behind both protocols and a route for decisions. */
const appOf = (desk: ApprovalQueue, paid: unknown[]): Hono => {
  const pay = requireApproval(
    tool({
      name: 'pay',
      description: 'Pays.',
      input: jsonSchema({
        type: 'object',
        properties: { amount: { type: 'number' } },
        required: ['amount'],
      }),
      run: (input) => {
        paid.push(input);
        return 'Paid.';
      },
    }),
    desk.approve,
  );
  const agent = () =>
    createAgent({
      model: scriptedModel([toolCall('pay', { amount: 5 }, 'p')], [text('Done.')]),
      tools: [pay],
    });
  const app = new Hono();
  const approvals = desk;
  app.post('/chat', () =>
    uiMessageStreamResponse((demand) => agent().stream$('?', { demand }), { approvals }),
  );
  app.post('/ag-ui', () =>
    agUiResponse((demand) => agent().stream$('?', { demand }), { approvals }),
  );
  const decide = approvalsHandler(desk);
  app.post('/approvals', ({ req }) => decide(req.raw));
  return app;
};

const serving = async <T>(app: Hono, test: (url: string) => Promise<T>): Promise<T> => {
  const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  try {
    return await test(`http://127.0.0.1:${port}`);
  } finally {
    if ('closeAllConnections' in server) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
};

/** Reads server-sent events, and shows each token to somebody who decides. */
const readDeciding = async (
  response: Response,
  decide: (token: string) => Promise<unknown>,
): Promise<string> => {
  const decoder = new TextDecoder();
  const tokens = new Set<string>();
  let all = '';
  const body: AsyncIterable<Uint8Array> = response.body ?? new ReadableStream<Uint8Array>();
  for await (const bytes of body) {
    all += decoder.decode(bytes, { stream: true });
    for (const [, token = ''] of all.matchAll(/"token":"([\w.-]+)"/g)) {
      if (!tokens.has(token)) {
        tokens.add(token);
        await decide(token);
      }
    }
  }
  return all;
};

const approvalsIn = (all: string): readonly unknown[] =>
  all
    .split('\n\n')
    .map((line) => parsedJson(line.replace(/^data: /, '')))
    .filter(isRecord)
    .flatMap((it) =>
      it['type'] === 'data-approval' || String(it['name']).startsWith('millrace.approval')
        ? [it['data'] ?? it['value']]
        : [],
    );

describe.each(['/chat', '/ag-ui'])('over HTTP, from %s to a decision and back', (path) => {
  const rounds: readonly [string, Exclude<Verdict, boolean>, readonly unknown[]][] = [
    ['an approval', { approved: true }, [{ amount: 5 }]],
    ['another input', { approved: true, input: { amount: 4 } }, [{ amount: 4 }]],
    ['a denial', { approved: false, reason: 'Too much.' }, []],
  ];

  it.each(rounds)('T12: %s', async (_, verdict, expected) => {
    const desk = queueOf();
    const paid: unknown[] = [];
    await serving(appOf(desk, paid), async (url) => {
      const send = (token: string, sent: object = verdict) =>
        fetch(`${url}/approvals`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ token, ...sent }),
        });
      const statuses: number[] = [];
      const all = await readDeciding(
        await fetch(`${url}${path}`, { method: 'POST' }),
        async (it) => {
          expect(paid).toEqual([]);
          for (const token of [`${it}A`, it, it]) statuses.push((await send(token)).status);
          statuses.push((await send(it, { ...verdict, approved: !verdict.approved })).status);
        },
      );
      expect(statuses).toEqual([401, 204, 204, 409]);
      expect(paid).toEqual(expected);
      expect(all).toContain('Done.');
      const use = { [path === '/chat' ? 'toolName' : 'toolCallName']: 'pay', localId: 'p' };
      const token = expect.any(String);
      const asked = path === '/chat' ? { inputSchema: { type: 'object' } } : {};
      expect(approvalsIn(all)).toMatchObject([
        use,
        { ...use, ...asked, token, expiresAt: expect.any(Number), mayEdit: true },
        use,
      ]);
      // The reason of a person is for people, too.
      const decided = { ...use, ...(verdict.approved ? {} : { reason: verdict.reason }) };
      expect(approvalsIn(all).at(-1)).toMatchObject(decided);
      expect(JSON.stringify(approvalsIn(all).at(-1))).not.toContain('token');
    });
    expect(await waitingNow(desk)).toEqual([]);
  });

  it('I5: withdraws the request when its client leaves', async () => {
    const desk = queueOf();
    const paid: unknown[] = [];
    await serving(appOf(desk, paid), async (url) => {
      const left = new AbortController();
      const gone = new Promise<void>((resolve) => {
        let wasThere = false;
        desk.requests$.subscribe(({ length }) => {
          if (wasThere && length === 0) resolve();
          wasThere ||= length > 0;
        });
      });
      const response = await fetch(`${url}${path}`, { method: 'POST', signal: left.signal });
      await expect(
        readDeciding(response, () => {
          left.abort();
          return Promise.resolve();
        }),
      ).rejects.toThrow();
      await gone;
    });
    expect(paid).toEqual([]);
  });
});
