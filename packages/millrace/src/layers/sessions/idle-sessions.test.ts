import { describe, expect, it } from '@jest/globals';
import {
  concatMap,
  defer,
  map,
  mergeMap,
  NEVER,
  type Observable,
  of,
  throwError,
  timer,
} from 'rxjs';
import type { TestScheduler } from 'rxjs/testing';
import { type Agent, createAgent } from '../../agent.js';
import { inProcessMemory } from '../../memories/in-process-memory.js';
import { finish, marbles, text } from '../../testing/index.js';
import { inProcessSessions, keepSessions, type KeptSession, type SessionStore } from './index.js';

/** Answers after the time, in milliseconds, that the question begins with. */
const slowAgent = (scheduler: TestScheduler): Agent =>
  createAgent({
    model: {
      name: 'slow',
      stream$: ({ messages }) => {
        const [block] = messages.at(-1)?.content ?? [];
        const ms = block?.type === 'text' ? Number.parseInt(block.text, 10) : 0;
        const answer = [text('Done.'), finish()];
        return ms > 0 ? timer(ms, scheduler).pipe(mergeMap(() => answer)) : of(...answer);
      },
    },
  });

interface Options {
  readonly idleMs?: number;
  readonly idleBytes?: number;
}

const setUp = (
  scheduler: TestScheduler,
  options: Options,
  change: (store: SessionStore) => Partial<SessionStore> = () => ({}),
) => {
  const inner = inProcessSessions();
  const loads: string[] = [];
  const saves: string[] = [];
  const noted = <T>(list: string[], id: string, work$: Observable<T> = NEVER): Observable<T> =>
    defer(() => {
      list.push(id);
      return work$;
    });
  const counted: SessionStore = {
    ...inner,
    load$: (id) => noted(loads, id, inner.load$(id)),
    save$: (id, ...given) => noted(saves, id, inner.save$(id, ...given)),
    append$: (id, ...given) => noted(saves, id, inner.append$?.(id, ...given)),
  };
  const memory = inProcessMemory();
  const store = { ...counted, ...change(counted) };
  const kept = keepSessions(slowAgent(scheduler), store, { ...options, memory, scheduler });
  const call$ = (id: string, question = 'now'): Observable<KeptSession> =>
    kept
      .open$(id)
      .pipe(
        concatMap((session) => session.call$(question, { scheduler }).pipe(map(() => session))),
      );
  /** Which of these sessions have messages in this process. */
  const held = (...ids: readonly string[]): string =>
    ids.filter((id) => now(memory(id).load$())?.length !== 0).join('');
  return { kept, loads, saves, call$, held, store };
};

/** The first value of a synchronous Observable. */
const now = <T>(value$: Observable<T>): T | undefined => {
  let found: T | undefined;
  value$.subscribe((value) => (found = value)).unsubscribe();
  return found;
};

/** Runs a test in virtual time; `at(ms, work)` runs work then. */
const inTime = (
  test: (scheduler: TestScheduler, at: (ms: number, work: () => void) => void) => void,
): void => {
  marbles(({ scheduler, flush }) => {
    test(scheduler, (ms, work) => timer(ms, scheduler).subscribe(work));
    flush();
  });
};

const stackDepth = (): number => {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = Infinity;
  const depth = new Error().stack?.split('\n').length ?? 0;
  Error.stackTraceLimit = limit;
  return depth;
};

const big = 'x'.repeat(200_000);

describe('S3: idle sessions', () => {
  it('are closed after a time, though no other one is opened', () => {
    inTime((scheduler, at) => {
      const { call$, held, saves } = setUp(scheduler, { idleMs: 100 });
      at(1, () => call$('a').subscribe());
      at(40, () => call$('b').subscribe());
      at(100, () => expect(held('a', 'b')).toBe('ab'));
      at(102, () => expect(held('a', 'b')).toBe('b'));
      at(139, () => expect(held('a', 'b')).toBe('b'));
      at(141, () => {
        expect(held('a', 'b')).toBe('');
        // Both were saved after their calls, and nothing has changed since.
        expect(saves).toEqual(['a', 'b']);
      });
    });
  });

  it('have no timer if none is open, and one if there are several', () => {
    inTime((scheduler, at) => {
      const { call$ } = setUp(scheduler, { idleMs: 1_000 });
      const timers = (): number => scheduler.actions.length;
      at(10, () => {
        const before = timers();
        for (const id of ['a', 'b', 'c']) call$(id).subscribe();
        expect(timers()).toBe(before + 1);
        for (const id of ['a', 'b', 'c']) {
          call$(id)
            .pipe(concatMap((session) => session.close$()))
            .subscribe();
        }
        expect(timers()).toBe(before);
      });
      at(20, () => call$('a').subscribe());
      at(1_030, () => expect(timers()).toBe(0));
    });
  });

  it('are watched by one timer, however long some session is idle', () => {
    // Subscriptions that hold each other are unsubscribed inside each other.
    const depthAfter = (ticks: number): number => {
      let depth = 0;
      inTime((scheduler, at) => {
        const schedule = scheduler.schedule.bind(scheduler);
        scheduler.schedule = (...given) => {
          const action = schedule(...given);
          action.add(() => (depth = Math.max(depth, stackDepth())));
          return action;
        };
        const { kept } = setUp(scheduler, { idleMs: 5 });
        const open$ = (tick: number): Observable<KeptSession> => kept.open$(`s${tick % 20}`);
        for (let tick = 0; tick < ticks; tick += 1) at(tick, () => open$(tick).subscribe());
        at(ticks, () => {
          for (let tick = ticks - 6; tick < ticks; tick += 1) {
            open$(tick)
              .pipe(concatMap((session) => session.close$()))
              .subscribe();
          }
          expect(scheduler.actions).toHaveLength(0);
          scheduler.schedule = schedule;
        });
      });
      return depth;
    };
    expect(depthAfter(200)).toBe(depthAfter(50));
  });

  it('are not those that a call runs in, however long it takes', () => {
    inTime((scheduler, at) => {
      const { call$, held } = setUp(scheduler, { idleMs: 100, idleBytes: 0 });
      call$('a').subscribe();
      call$('a', `500 ms ${big}`).subscribe();
      at(10, () => call$('b', big).subscribe());
      at(20, () => call$('c', big).subscribe());
      at(30, () => expect(held('a', 'b', 'c')).toBe('ac'));
      at(499, () => expect(held('a', 'b', 'c')).toBe('a'));
      at(599, () => expect(held('a', 'b', 'c')).toBe('a'));
      at(601, () => expect(held('a', 'b', 'c')).toBe(''));
    });
  });

  it('are closed in the order of their last use if they take more than so many bytes', () => {
    inTime((scheduler, at) => {
      const { call$, held } = setUp(scheduler, { idleBytes: 800_000 });
      for (const [index, id] of ['a', 'b', 'c', 'a', 'd'].entries()) {
        at(index + 1, () => call$(id, id === 'a' ? 'now' : big).subscribe());
      }
      at(10, () => {
        expect(held('a', 'b', 'c', 'd')).toBe('abcd');
        call$('e', big).subscribe();
        expect(held('a', 'b', 'c', 'd', 'e')).toBe('acde');
        // One that is used counts once it is idle.
        call$('d', `5 ms ${big}`).subscribe();
        call$('g', big).subscribe();
        expect(held('a', 'b', 'c', 'd', 'e', 'g')).toBe('acdeg');
      });
      at(16, () => {
        expect(held('a', 'b', 'c', 'd', 'e', 'g')).toBe('dg');
        // The last one stays, and makes room for itself.
        call$('f', big.repeat(9)).subscribe();
        expect(held('d', 'e', 'f', 'g')).toBe('f');
        call$('f').subscribe();
        expect(held('f')).toBe('f');
        call$('a').subscribe();
        expect(held('a', 'f')).toBe('a');
      });
    });
  });

  it('count as what they hold: strings that are wide twice, pictures, and what is gone no longer', () => {
    inTime((scheduler, at) => {
      const { call$, kept, held } = setUp(scheduler, { idleBytes: 900_000 });
      at(1, () => call$('a', 'ж'.repeat(200_000)).subscribe());
      at(2, () => call$('b', big).subscribe());
      at(3, () => call$('c', big).subscribe());
      at(4, () => expect(held('a', 'b', 'c')).toBe('abc'));
      at(5, () => {
        kept
          .open$('a')
          .pipe(concatMap((session) => session.clear$()))
          .subscribe();
      });
      at(6, () => call$('d', big.repeat(2)).subscribe());
      at(7, () => expect(held('b', 'c', 'd')).toBe('bcd'));
      at(8, () => call$('a', 'ж'.repeat(200_000)).subscribe());
      at(9, () => expect(held('a', 'b', 'c', 'd')).toBe('ad'));
    });
  });

  it('count with messages that were not saved', () => {
    inTime((scheduler, at) => {
      const { kept, held, saves } = setUp(scheduler, { idleBytes: 500_000 });
      const append = (id: string): void => {
        const message = { id: 'm', role: 'user', content: [{ type: 'text', text: big }] } as const;
        kept
          .open$(id)
          .pipe(concatMap((session) => session.memory.append$([message])))
          .subscribe();
      };
      for (const [index, id] of ['a', 'b', 'c'].entries()) at(index, () => append(id));
      at(12, () => {
        expect(held('a', 'b', 'c')).toBe('bc');
        expect(saves).toEqual(['a']);
      });
    });
  });

  it('are saved if they have changed, and come back as they were', () => {
    inTime((scheduler, at) => {
      const { call$, kept, held, loads, saves } = setUp(scheduler, { idleMs: 100 });
      let session: KeptSession | undefined;
      call$('a').subscribe((opened) => {
        session = opened;
        opened.rename('A title');
      });
      kept.open$('empty').subscribe();
      at(101, () => {
        expect(held('a', 'empty')).toBe('');
        expect(saves).toEqual(['a', 'a']);
        expect(session?.title).toBe('A title');
        session?.call$('again').subscribe();
        expect(loads).toEqual(['a', 'empty', 'a']);
        expect(session?.title).toBe('A title');
        expect(session && now(session.memory.load$())).toHaveLength(4);
        expect(session?.version).toBe(3);
      });
    });
  });

  it.each<[string, (session: KeptSession) => Observable<unknown>]>([
    ['a call', (session) => session.call$('again')],
    ['the events of a call', (session) => session.stream$('again')],
    ['messages', (session) => session.memory.load$()],
    ['a change of the messages', (session) => session.memory.remove$?.('none') ?? NEVER],
    ['the state', (session) => session.saveState$()],
    ['a save', (session) => session.save$()],
    ['a state that is loaded', (session) => session.loadState$({})],
    ['cancelled tool calls', (session) => session.cancelSuspended$()],
    ['a cleared conversation', (session) => session.clear$()],
  ])('are opened again by their handles: %s', (_name, use$) => {
    inTime((scheduler, at) => {
      const { kept, call$, loads } = setUp(scheduler, { idleMs: 100 });
      const handles: KeptSession[] = [];
      for (const opened$ of [call$('a'), kept.open$('a')])
        opened$.subscribe((it) => handles.push(it));
      at(150, () => {
        const [first, second] = handles;
        if (first !== undefined) use$(first).subscribe({ error: () => undefined });
        expect(loads).toEqual(['a', 'a']);
        // The other handle has the same session.
        expect(second?.version).toBe(first?.version);
        second?.save$().subscribe();
        expect(loads).toHaveLength(2);
        expect(second?.version).toBe(first?.version);
      });
    });
  });

  it('that cannot be saved stay open, and are tried again, later', () => {
    inTime((scheduler, at) => {
      let isBroken = false;
      let attempts = 0;
      const { call$, held } = setUp(scheduler, { idleMs: 100, idleBytes: 300_000 }, (store) => ({
        append$: (...given) =>
          defer(() => {
            attempts += 1;
            return isBroken
              ? throwError(() => new Error('disk full'))
              : (store.append$?.(...given) ?? NEVER);
          }),
        save$: (...given) =>
          defer(() => {
            if (isBroken) attempts += 1;
            return isBroken ? throwError(() => new Error('disk full')) : store.save$(...given);
          }),
      }));
      call$('a', big).subscribe((session) => session.rename('A'));
      at(1, () => {
        isBroken = true;
        call$('b', big).subscribe({ error: () => undefined });
        expect(held('a', 'b')).toBe('ab');
      });
      at(2, () => (attempts = 0));
      at(99, () => expect(attempts).toBe(0));
      at(150, () => {
        expect(attempts).toBe(2);
        expect(held('a', 'b')).toBe('ab');
        isBroken = false;
      });
      at(250, () => expect(held('a', 'b')).toBe(''));
    });
  });

  it('take a call that comes while they are being saved once they are open again', () => {
    inTime((scheduler, at) => {
      const { call$, loads } = setUp(scheduler, { idleMs: 100 }, (store) => ({
        append$: (...given) =>
          timer(10, scheduler).pipe(concatMap(() => store.append$?.(...given) ?? NEVER)),
      }));
      const seen: unknown[] = [];
      let session: KeptSession | undefined;
      call$('a').subscribe((opened) => {
        session = opened;
        opened.rename('A');
      });
      at(105, () => {
        session?.call$('again', { scheduler }).subscribe({
          next: ({ reason }) => seen.push(reason),
          error: (error: unknown) => seen.push(error),
        });
        call$('a').subscribe({
          next: () => seen.push('other'),
          error: ({ code }: { code: string }) => seen.push(code),
        });
      });
      at(170, () => {
        expect(loads).toEqual(['a', 'a']);
        expect(seen).toEqual(['answer', 'other']);
      });
    });
  });

  it('that a program closes meanwhile are closed', () => {
    inTime((scheduler, at) => {
      const { call$, held } = setUp(scheduler, { idleMs: 100 }, (store) => ({
        append$: (...given) =>
          timer(10, scheduler).pipe(concatMap(() => store.append$?.(...given) ?? NEVER)),
      }));
      let session: KeptSession | undefined;
      const seen: unknown[] = [];
      call$('a').subscribe((opened) => {
        session = opened;
        opened.rename('A');
      });
      at(105, () => session?.close$().subscribe({ complete: () => seen.push('closed') }));
      at(120, () => {
        expect(held('a')).toBe('');
        session
          ?.call$('again')
          .subscribe({ error: ({ code }: { code: string }) => seen.push(code) });
        expect(seen).toEqual(['closed', 'invalidState']);
      });
    });
  });

  it('are freed after a conflict, unless they are open again', () => {
    inTime((scheduler, at) => {
      const { call$, kept, held, store } = setUp(scheduler, { idleMs: 100 });
      const other = keepSessions(slowAgent(scheduler), store, { scheduler });
      const seen: unknown[] = [];
      for (const id of ['a', 'b']) {
        call$(id).subscribe((session) => {
          other.open$(id).subscribe((theirs) => theirs.save$().subscribe());
          session.save$().subscribe({ error: ({ code }: { code: string }) => seen.push(code) });
        });
      }
      at(50, () => {
        expect(held('a', 'b')).toBe('ab');
        kept.open$('b').subscribe();
      });
      at(101, () => expect(held('a', 'b')).toBe('b'));
      at(151, () => expect(held('a', 'b')).toBe(''));
      at(200, () => {
        expect(seen).toEqual(['conflict', 'conflict']);
        call$('a').subscribe();
        expect(held('a')).toBe('a');
      });
    });
  });
});
