import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, it } from '@jest/globals';
import { createAgent } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { isRecord } from 'millrace/values';
import { firstValueFrom, of, ReplaySubject, Subject } from 'rxjs';
import { mcp } from './index.js';
import { done } from './shop.test-support.js';
import { answer, at, send, stream, web } from './web.test-support.js';

const form = {
  method: 'elicitation/create',
  params: { mode: 'form', message: 'Salt?', requestedSchema: { type: 'object', properties: {} } },
};

describe('I21: a question between two polls of a task', () => {
  it('is asked in the async context of the task, and of no one if another call is open', async () => {
    const user = new AsyncLocalStorage<string>();
    const asked: unknown[] = [];
    const answers$ = new Subject<unknown>();
    const open$ = new Subject<() => void>();
    let ask = (_message: object): void => undefined;
    const task = { taskId: 't1', status: 'working', createdAt: 'now', pollInterval: 60_000 };
    const url = await web({
      GET: (_message, _request, response) => (ask = stream(response)),
      initialize: (message, _request, response) =>
        answer(response, message, {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
          serverInfo: { name: 'web', version: '1' },
        }),
      'tools/list': (message, _request, response) =>
        answer(response, message, {
          tools: ['required', 'forbidden'].map((taskSupport) => ({
            ...{ name: taskSupport, description: 'Works.', inputSchema: { type: 'object' } },
            execution: { taskSupport },
          })),
        }),
      'tools/call': (message, _request, response) => {
        if (isRecord(message['params']) && message['params']['name'] === 'required') {
          answer(response, message, { task });
          open$.next(() => undefined);
        } else {
          const write = stream(response);
          open$.next(() => {
            write({ id: message['id'], result: done });
            response.end();
          });
        }
      },
      undefined: (message, _request, response) => {
        send(response, 202);
        answers$.next(message);
      },
    });
    const servers = mcp(
      at(
        url,
        {},
        {
          onElicit: () => {
            asked.push(user.getStore());
            return of({ action: 'decline' as const });
          },
        },
      ),
    );
    const held = servers.servers$.subscribe();
    /** Calls a tool as a user, until the server has the request. */
    const called = async (who: string, name: string) => {
      const model = scriptedModel([toolCall(`web_${name}`)], [text('Done.')]);
      const ended$ = new ReplaySubject<unknown>(1);
      const opened = firstValueFrom(open$);
      const call$ = createAgent({ model, use: [servers] }).call$('?');
      const call = user.run(who, () => call$.subscribe(ended$));
      return { end: await opened, ended$, call };
    };
    const question = async (id: string): Promise<void> => {
      const answered = firstValueFrom(answers$);
      ask({ id, ...form });
      await answered;
    };
    // The first call, which waits for the list of tools.
    const ann = await called('ann', 'required');
    const ben = await called('ben', 'forbidden');
    await question('both');
    ben.end();
    await firstValueFrom(ben.ended$);
    await question('one');
    expect(asked).toEqual([undefined, 'ann']);
    ann.call.unsubscribe();
    held.unsubscribe();
  });
});
