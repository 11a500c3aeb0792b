import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it } from '@jest/globals';
import { createAgent, type ModelChunk, on, requireApproval, suspend, tool } from 'millrace';
import { type CallStoreDriver, createCallStore, inProcessCalls } from 'millrace/journal';
import { inProcessSessions, type SessionStore } from 'millrace/sessions';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { defer, delay, firstValueFrom, map, of, ReplaySubject, Subject, take, tap } from 'rxjs';
import { queueOf, waiting } from '../approvals/asking.test-support.js';
import { chatServer, type ChatServer } from './index.js';

const servers: ChatServer[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close({ timeoutMs: 0 }))));

/** A server that notes in whose async context each piece of work is done. */
const place = () => {
  const user = new AsyncLocalStorage<string>();
  const seen: (readonly [what: string, who: string | undefined])[] = [];
  const note = (what: string) => (): void => void seen.push([what, user.getStore()]);
  const noted =
    <Given extends readonly unknown[], Made>(what: string, work: (...given: Given) => Made) =>
    (...given: Given): Made => {
      note(what)();
      return work(...given);
    };
  const begun$ = new ReplaySubject<string>(Infinity);
  const go$ = new Subject<string>();
  const approvals = queueOf();
  const pay = tool({ name: 'pay', description: 'Pays.', run: noted('tool', () => 'Paid.') });
  const wait = tool({
    name: 'wait',
    description: 'Waits.',
    run: noted('tool', () => {
      begun$.next('wait');
      return go$.pipe(take(1));
    }),
  });
  const place = tool({ name: 'place', description: 'Asks.', run: noted('tool', () => suspend()) });
  const answer = (...chunks: readonly ModelChunk[]): ScriptedAnswer =>
    noted('model', () => of(...chunks, { type: 'finish', finish: 'stop' } as const));
  const driver = inProcessCalls();
  const calls: CallStoreDriver = {
    ...driver,
    claim$: (callId) =>
      driver.claim$(callId).pipe(
        map(({ append$ }) => ({
          append$: (batch) => defer(noted('append', () => append$(batch))),
        })),
      ),
  };
  const inner = inProcessSessions();
  const sessions: SessionStore = {
    ...inner,
    save$: (...given) => defer(noted('save', () => inner.save$(...given))),
  };
  const serve = (...answers: readonly ScriptedAnswer[]) => {
    const agent = createAgent({
      name: 'payer',
      model: scriptedModel(...answers),
      tools: [
        requireApproval(
          requireApproval(pay, approvals.approve),
          noted('approver', () => of(true).pipe(delay(0))),
        ),
        wait,
        place,
      ],
      use: [
        ...(['preReasoning', 'postReasoning', 'preActing', 'postActing', 'postCall'] as const).map(
          (type) => on(type, tap(note(type))),
        ),
      ],
    });
    const server = chatServer(agent, {
      approvals,
      store: { calls: createCallStore(calls), sessions },
    });
    servers.push(server);
    const send = (who: string, path: string, body?: object) =>
      user.run(who, async () => {
        const response = await server.respond(
          new Request(`http://localhost/api/chat${path}`, {
            headers: { 'content-type': 'application/json' },
            ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
          }),
        );
        return {
          status: response.status,
          body: response.body === null ? '' : await response.text(),
        };
      });
    return { server, send };
  };
  return { user, seen, begun$, go$, approvals, answer, serve };
};

const ask = (id: string, said: string) => ({
  id: 'a',
  messages: [{ id, role: 'user', parts: [{ type: 'text', text: said }] }],
});

/** What is done for Ann although Ben has caused it. */
const forOthers = (seen: ReturnType<typeof place>['seen']) =>
  seen.filter(([, who]) => who !== 'ann').map(([what, who]) => `${what}: ${String(who)}`);

describe('I21: a call of Ann', () => {
  it('is hers after Ben has approved it', async () => {
    const { seen, answer, serve, approvals } = place();
    const { send } = serve(answer(toolCall('pay', {}, 'p')), answer(text('Done.')));
    const asked = send('ann', '', ask('q', 'Pay.'));
    const { token, toolCallId, callId } = await waiting(approvals);
    await asked;
    const id = /"approvalId":"([^"]+)"/u.exec((await asked).body)?.[1];
    expect([token, toolCallId, callId, id]).not.toContain(undefined);
    const approval = { state: 'approval-responded', approval: { id, approved: true } };
    const messages = [{ id: 'm', role: 'assistant', parts: [approval] }];
    expect((await send('ben', '', { id: 'a', messages })).body).toContain('Done.');
    expect(forOthers(seen)).toEqual([]);
  });

  it('is hers while Ben reads it, and when his request ends what it waits for', async () => {
    const { user, seen, answer, serve, begun$, go$ } = place();
    const { send } = serve(answer(toolCall('wait', {}, 'w')), answer(text('Done.')));
    const asked = send('ann', '', ask('q', 'Wait.'));
    await firstValueFrom(begun$);
    const read = send('ben', '/a/stream');
    user.run('ben', () => {
      go$.next('Go.');
    });
    expect((await read).body).toContain('Done.');
    await asked;
    expect(forOthers(seen)).toEqual([]);
  });

  it('is hers when Ben stops it', async () => {
    const { seen, answer, serve, begun$ } = place();
    const { send } = serve(answer(toolCall('wait', {}, 'w')), answer(text('Done.')));
    const asked = send('ann', '', ask('q', 'Wait.'));
    await firstValueFrom(begun$);
    expect((await send('ben', '/a/stop', {})).body).toContain('1');
    await asked;
    expect(forOthers(seen)).toEqual([]);
  });

  it('is hers when Ben steers it', async () => {
    const { seen, answer, serve, begun$, go$ } = place();
    const { send } = serve(answer(toolCall('wait', {}, 'w')), answer(text('Done.')));
    const asked = send('ann', '', ask('q', 'Wait.'));
    await firstValueFrom(begun$);
    const steered = send('ben', '/a/steer', { text: 'Quick.' });
    await turns();
    go$.next('Go.');
    expect((await steered).body).toContain('true');
    await asked;
    expect(forOthers(seen)).toEqual([]);
  });

  it('does not give its context to the one of Ben that waits for it, nor takes his', async () => {
    const { user, seen, answer, serve, begun$, go$ } = place();
    const { send } = serve(
      answer(toolCall('wait', {}, 'w')),
      answer(text('Done.')),
      answer(toolCall('wait', {}, 'w2')),
      answer(text('Done, too.')),
    );
    const asked = send('ann', '', ask('q', 'Wait.'));
    await firstValueFrom(begun$);
    const second = send('ben', '', ask('r', 'And you?'));
    await turns();
    user.run('cyd', () => {
      go$.next('Go.');
    });
    expect((await asked).body).toContain('Done.');
    await turns();
    user.run('cyd', () => {
      go$.next('Go.');
    });
    expect((await second).body).toContain('Done, too.');
    // Both do the same, each in their own context. Only the first one saves a new session.
    const doneBy = (who: string) =>
      seen.flatMap(([what, by]) => (by === who && what !== 'save' ? [what] : [])).toSorted();
    expect(doneBy('ben')).toEqual(doneBy('ann'));
    expect(seen.every(([, who]) => who === 'ann' || who === 'ben')).toBe(true);
  });

  it('and one of Ben that continues it with a result are each their own', async () => {
    const { seen, answer, serve } = place();
    const { send } = serve(answer(toolCall('place', {}, 'p')), answer(text('Done.')));
    const asked = await send('ann', '', ask('q', 'Where?'));
    expect(forOthers(seen)).toEqual([]);
    const before = seen.length;
    const toolCallId = /"toolCallId":"([^"]+)"/u.exec(asked.body)?.[1] ?? '';
    const parts = [
      { type: 'step-start' },
      { type: 'tool-place', toolCallId, state: 'output-available', output: 'Oslo' },
      { type: 'data-suspended', data: { toolCallId, toolName: 'place', localId: 'p' } },
    ];
    const id = /"messageId":"([^"]+)"/u.exec(asked.body)?.[1] ?? '';
    const messages = [...ask('q', 'Where?').messages, { id, role: 'assistant', parts }];
    expect((await send('ben', '', { id: 'a', messages })).body).toContain('Done.');
    expect(seen.slice(before).map(([what, who]) => `${what}: ${String(who)}`)).toEqual(
      seen.slice(before).map(([what]) => `${what}: ben`),
    );
  });
});

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
};
