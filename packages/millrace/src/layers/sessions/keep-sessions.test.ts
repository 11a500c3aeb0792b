import { describe, expect, it } from '@jest/globals';
import {
  catchError,
  concat,
  concatMap,
  EMPTY,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  mergeMap,
  NEVER,
  of,
  take,
  throwError,
  timer,
  toArray,
} from 'rxjs';
import { type Agent, createAgent } from '../../agent.js';
import { windowMemory } from '../../memories/index.js';
import { inProcessMemory, type MemoryFactory } from '../../memories/in-process-memory.js';
import { finish, marbles, scriptedModel, text } from '../../testing/index.js';
import { inProcessSessions } from './in-process-sessions.js';
import type { SessionStore } from './session-state.js';
import { keepSessions } from './keep-sessions.js';
import { sampleAgent } from './sample-sessions.test-support.js';
import { sessions, type SessionState } from './index.js';

const storedIn = async (store: SessionStore, id = 's') => {
  const stored = await lastValueFrom(store.load$(id));
  const state = stored?.state as SessionState | undefined;
  return { version: stored?.version, texts: state?.messages.map(({ content }) => content[0]) };
};

const says = (...texts: readonly string[]): Agent => sampleAgent(texts.map((it) => [text(it)]));

const open = (agent: Agent, store: SessionStore, id = 's') => keepSessions(agent, store).open(id);

describe('S4: keepSessions', () => {
  it('opens a session as it was saved after its last call', async () => {
    const store = inProcessSessions();
    const first = await open(says('one', 'two'), store);
    expect(first.version).toBeUndefined();
    await first.call('a');
    expect([first.version, (await storedIn(store)).version]).toEqual([1, 1]);
    await first.call('b');
    const model = scriptedModel([text('three')]);
    const second = await open(createAgent({ model }), store);
    expect([second.id, second.version]).toEqual(['s', 2]);
    await second.call('c');
    expect(model.requests[0]?.messages).toHaveLength(5);
    expect((await storedIn(store)).version).toBe(3);
  });

  it.each<[string, (session: Awaited<ReturnType<typeof open>>) => Promise<unknown>]>([
    ['call', (session) => session.call('a')],
    ['call$', (session) => lastValueFrom(session.call$('a'))],
    ['stream$', (session) => lastValueFrom(session.stream$('a').pipe(toArray()))],
    ['asOperator', (session) => lastValueFrom(of('a').pipe(session.asOperator()))],
    [
      'stream',
      async (session) => {
        for await (const _event of session.stream('a'));
      },
    ],
  ])('saves after %s', async (_name, call) => {
    const store = inProcessSessions();
    const session = await open(says('one'), store);
    await call(session);
    expect((await storedIn(store)).texts).toHaveLength(2);
    expect(session.version).toBe(1);
  });

  it('saves what a call that failed has left, and the failure is what is heard', async () => {
    const store = inProcessSessions();
    const agent = sampleAgent([
      [{ type: 'toolCall', name: 'add', input: { a: 1, b: 1 } }],
      throwError(() => new Error('broken')),
    ]);
    const session = await open(agent, store);
    await expect(session.call('a')).rejects.toThrow('broken');
    expect((await storedIn(store)).texts).toHaveLength(3);
    const full$ = throwError(() => new Error('disk full'));
    const failing = { ...store, save$: () => full$, append$: () => full$ };
    const other = await open(sampleAgent([throwError(() => new Error('broken'))]), failing);
    await expect(other.call('a')).rejects.toThrow('broken');
  });

  it('S5: reports a conflict, and refuses to continue with what is no longer there', async () => {
    const store = inProcessSessions();
    const sessions = keepSessions(says('one', 'three'), store);
    const ours = await sessions.open('s');
    const theirs = await open(says('two'), store);
    await theirs.call('b');
    await expect(ours.call('a')).rejects.toMatchObject({ code: 'conflict' });
    for (const late of [ours.call('c'), ours.save()]) {
      await expect(late).rejects.toMatchObject({
        code: 'conflict',
        message: expect.stringContaining('Open it again'),
      });
    }
    const again = await sessions.open('s');
    await ours.close();
    await again.call('d');
    expect((await storedIn(store)).texts).toMatchObject(
      ['b', 'two', 'd', 'three'].map((it) => ({ text: it })),
    );
  });

  it('opens a session once, and its handles save one after the other', () => {
    marbles(({ expectObservable, scheduler, flush }) => {
      const store = inProcessSessions();
      let loads = 0;
      const slow: SessionStore = {
        ...store,
        load$: () =>
          timer(2, scheduler).pipe(
            map(() => {
              loads += 1;
              return undefined;
            }),
          ),
        save$: (...given) => timer(3, scheduler).pipe(concatMap(() => store.save$(...given))),
        append$: (...given) =>
          timer(3, scheduler).pipe(concatMap(() => store.append$?.(...given) ?? EMPTY)),
      };
      const sessions = keepSessions(says(), slow);
      const saved$ = sessions.open$('s').pipe(concatMap((session) => session.save$()));
      expectObservable(merge(saved$, saved$)).toBe('-----a--(b|)', { a: 1, b: 2 });
      flush();
      expect(loads).toBe(1);
    });
  });

  it('S3: a second handle steers and interrupts the call of the first', () => {
    marbles(({ scheduler, flush, cold }) => {
      const slow$ = timer(20, scheduler).pipe(mergeMap(() => [text('late'), finish()]));
      const agent = sampleAgent([slow$, slow$]);
      let loads = 0;
      const store = inProcessSessions();
      const kept = keepSessions(agent, {
        ...store,
        load$: (id) => {
          loads += 1;
          return store.load$(id);
        },
      });
      const seen: unknown[] = [];
      const open$ = kept.open$('s');
      open$
        .pipe(concatMap((session) => session.call$('a', { scheduler })))
        .subscribe(({ reason }) => seen.push(reason));
      cold('---a').subscribe(() => {
        open$.subscribe((session) => {
          session.call$('b').subscribe({ error: ({ code }) => seen.push(code) });
          session.steer$('c').subscribe(({ status }) => seen.push(status));
        });
      });
      cold('-----a').subscribe(() => {
        open$.subscribe((session) => seen.push(session.interrupt('Enough.')));
      });
      flush();
      expect(loads).toBe(1);
      expect(seen.map(String).sort()).toEqual(['busy', 'interrupted', 'notDelivered', 'true']);
    });
  });

  it('S3: loads once if the first leaves before it is loaded, and again after a failure or a close', () => {
    marbles(({ scheduler, expectObservable, flush, cold }) => {
      let loads = 0;
      const inner = inProcessSessions();
      const store: SessionStore = {
        ...inner,
        load$: (id) =>
          timer(4, scheduler).pipe(
            concatMap(() => {
              loads += 1;
              return loads === 2 ? throwError(() => new Error('down')) : inner.load$(id);
            }),
          ),
      };
      const kept = keepSessions(says(), store);
      const first = kept.open$('s').subscribe();
      cold('--a').subscribe(() => first.unsubscribe());
      const opened$ = (id: string) => kept.open$(id).pipe(map((session) => session.id));
      expectObservable(timer(3, scheduler).pipe(concatMap(() => opened$('s')))).toBe('----(s|)');
      const failed$ = timer(10, scheduler).pipe(concatMap(() => opened$('t')));
      expectObservable(failed$.pipe(catchError(() => opened$('t')))).toBe('18ms (t|)');
      const closed$ = timer(30, scheduler).pipe(
        concatMap(() => kept.open$('s')),
        concatMap((session) => concat(session.close$(), opened$('s'))),
      );
      expectObservable(closed$).toBe('34ms (s|)');
      flush();
      expect(loads).toBe(4);
    });
  });

  it('frees what this process holds when it is closed, and closes nothing that runs', async () => {
    const store = inProcessSessions();
    const agent = sampleAgent([[text('one')], NEVER]);
    const kept = keepSessions(agent, store);
    const session = await kept.open('s');
    await session.call('a');
    session.toolkit.activate('web');
    const running = session.call$('b').subscribe({ error: () => undefined });
    await expect(session.close()).rejects.toMatchObject({ code: 'busy' });
    running.unsubscribe();
    await Promise.all([session.close(), session.close()]);
    const held = await sessions(agent).open('s').saveState();
    expect([held.messages, held.groups]).toEqual([[], { web: false, shell: true }]);
    await expect(session.call('c')).rejects.toMatchObject({ code: 'invalidState' });
    const again = await kept.open('s');
    expect((await again.saveState()).messages).toHaveLength(2);
    expect(again.toolkit.names).toContain('search');
  });

  it('S8: is drained when all is saved, or that takes too long', () => {
    marbles(({ expectObservable, scheduler }) => {
      const inner = inProcessSessions();
      const drained$ = (saving: number) => {
        const slow: SessionStore = {
          ...inner,
          save$: (...given) =>
            timer(saving, scheduler).pipe(concatMap(() => inner.save$(...given))),
        };
        const answer$ = timer(3, scheduler).pipe(mergeMap(() => [text('one'), finish()]));
        const sessions = keepSessions(sampleAgent([answer$]), slow);
        return sessions.open$(`s${saving}`).pipe(
          mergeMap((session) =>
            merge(
              session.call$('a').pipe(ignoreElements()),
              sessions.drain$({ timeoutMs: 9, scheduler }),
            ),
          ),
          take(1),
          map(({ lost }) => lost),
        );
      };
      expectObservable(drained$(5)).toBe('8ms (0|)', [0]);
      expectObservable(drained$(50)).toBe('12ms (0|)', [0]);
    });
  });

  it('saves nothing after a call that was not let in', async () => {
    const store = inProcessSessions();
    const session = await open(sampleAgent([NEVER]), store);
    const running = session.call$('a').subscribe({ error: () => undefined });
    await expect(session.call('b')).rejects.toMatchObject({ code: 'busy' });
    expect(await storedIn(store)).toMatchObject({ version: undefined });
    running.unsubscribe();
  });

  it('I10: what the store does is a typed error, and one that cannot be opened can be tried again', async () => {
    const store = inProcessSessions();
    let broken = true;
    const flaky: SessionStore = {
      ...store,
      load$: (id) => (broken ? throwError(() => new Error('no disk')) : store.load$(id)),
      save$: () => throwError(() => new Error('no disk')),
    };
    const sessions = keepSessions(says('one'), flaky);
    await expect(sessions.open('s')).rejects.toMatchObject({ code: 'store' });
    broken = false;
    const session = await sessions.open('s');
    await expect(session.call('a')).rejects.toMatchObject({ code: 'store' });
    const foreign: SessionStore = { ...store, load$: () => of({ version: 1, state: { a: 1 } }) };
    await expect(open(says(), foreign)).rejects.toMatchObject({ code: 'invalidState' });
  });

  it('I10: refuses a memory that cannot take what was saved, before anything is done', async () => {
    const inner = inProcessMemory();
    const fixed: MemoryFactory = (id) => ({ load$: inner(id).load$, append$: inner(id).append$ });
    const store = inProcessSessions();
    const kept = keepSessions(says(), store, { memory: windowMemory(fixed) });
    await expect(kept.open('s')).rejects.toMatchObject({
      code: 'config',
      message: expect.stringContaining("omit 'memory'"),
    });
    expect(await lastValueFrom(store.find$())).toEqual([]);
    await keepSessions(says(), store, { memory: windowMemory(inner) }).open('s');
  });

  it('takes an agent and a store', () => {
    expect(() => keepSessions({} as never, inProcessSessions())).toThrow('needs an agent');
    expect(() => keepSessions(says(), {} as never)).toThrow('inProcessSessions()');
  });

  it('S4: clear is saved, so the conversation does not come back', async () => {
    const store = inProcessSessions();
    const first = await open(says('one'), store);
    await first.call('I am Ann.');
    await first.clear();
    expect((await storedIn(store)).texts).toEqual([]);
    const second = await open(says('two'), store);
    expect((await second.saveState()).messages).toEqual([]);
  });
});
