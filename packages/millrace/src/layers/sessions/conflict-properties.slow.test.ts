import fc from 'fast-check';
import { describe, expect, it } from '@jest/globals';
import {
  concat,
  concatMap,
  defer,
  EMPTY,
  from,
  lastValueFrom,
  map,
  type Observable,
  Subject,
  Subscription,
  take,
  tap,
  throwError,
  toArray,
  NEVER,
} from 'rxjs';
import { createAgent } from '../../agent.js';
import {
  type CallStoreDriver,
  calls$,
  createCallStore,
  inProcessCalls,
  journal,
  replay$,
} from '../../journal/index.js';
import type { ModelChunk, ModelRequest } from '../../models/model.js';
import { assertPaired } from '../../run.js';
import { finish, scriptedModel, text, toolCall } from '../../testing/index.js';
import { tool } from '../../tools/tool.js';
import { toMillraceError } from '../../values/errors.js';
import { addUsage, noUsage } from '../../values/usage.js';
import { pathTo } from '../../values/message-tree.js';
import { inProcessSessions } from './in-process-sessions.js';
import { callsIn, type SessionState, type SessionStore } from './session-state.js';
import { keepSessions, type KeptSession } from './keep-sessions.js';
import { treeOfState } from './session-tree.js';

const usage: ModelChunk = { type: 'usage', usage: { inputTokens: 3, outputTokens: 1 } };

/** Every second call uses a tool. */
const answerTo = ({ messages }: ModelRequest): readonly ModelChunk[] => {
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const number = Number(/c(\d+)\//u.exec(messages[asked]?.id ?? '')?.[1] ?? 0);
  const isNew = !messages.slice(asked).some(({ role }) => role === 'tool');
  return isNew && number % 2 === 0
    ? [toolCall('look'), usage, finish()]
    : [text(`Done ${number}.`), usage, finish()];
};

const dead$ = throwError(() => new Error('dead'));

/** Answers of the model, and saves, which wait until they are let through, one by one. */
const createGates = () => {
  const waiting: Subject<void>[] = [];
  let isDead = false;
  return {
    through: <T>(work: () => Observable<T>): Observable<T> =>
      defer(() => {
        const gate$ = new Subject<void>();
        waiting.push(gate$);
        return gate$.pipe(take(1), concatMap(work));
      }),
    letOne: (): boolean => {
      const next = waiting.shift();
      next?.next();
      return next !== undefined;
    },
    alive: <T>(work: () => Observable<T>): Observable<T> => defer(() => (isDead ? dead$ : work())),
    isDead: () => isDead,
    die: () => {
      isDead = true;
    },
  };
};

/** What outlasts the processes, and what each call was told. */
const createPlace = () => ({
  driver: inProcessCalls(),
  store: inProcessSessions(),
  told: new Map<string, string>(),
});

/** A process that answers the session `s`, and does as documented: after a conflict, it closes, opens and resumes it. */
const createProcess = ({ driver, store, told }: ReturnType<typeof createPlace>) => {
  const gates = createGates();
  const work = new Subscription();
  const calls: CallStoreDriver = {
    ...driver,
    claim$: (callId) =>
      driver
        .claim$(callId)
        .pipe(map(({ append$ }) => ({ append$: (batch) => gates.alive(() => append$(batch)) }))),
  };
  const sessions: SessionStore = {
    ...store,
    save$: (...given) => gates.through(() => gates.alive(() => store.save$(...given))),
    append$: (...given) =>
      gates.through(() => gates.alive(() => store.append$?.(...given) ?? NEVER)),
  };
  const durable = journal(createCallStore(calls), { onUncertain: 'rerun' });
  const model = scriptedModel(
    ...Array.from(
      { length: 500 },
      () => (request: ModelRequest) => gates.through(() => from(answerTo(request))),
    ),
  );
  const look = tool({ name: 'look', description: 'Looks.', run: () => 'Seen.' });
  const agent = createAgent({ model, tools: [look], use: [durable] });
  const kept = keepSessions(agent, sessions, { journal: durable });
  let session: KeptSession | undefined;
  let status: 'closed' | 'opening' | 'open' | 'conflict' = 'closed';
  let running = 0;
  const open = (): void => {
    if (status === 'opening' || status === 'open' || running > 0) return;
    const earlier = session;
    session = undefined;
    status = 'opening';
    const opened$ = concat(earlier?.close$() ?? EMPTY, kept.open$('s')).pipe(
      tap((opened) => {
        session = opened;
      }),
      concatMap((opened) => opened.resume$()),
    );
    work.add(
      opened$.subscribe({
        complete: () => {
          status = 'open';
        },
        error: (error: unknown) => {
          status = 'conflict';
          if (toMillraceError(error).code !== 'conflict') told.set('resume', String(error));
        },
      }),
    );
  };
  return {
    open,
    ask: (callId: string): void => {
      if (status !== 'open' || session === undefined) return;
      told.set(callId, 'nothing');
      running += 1;
      work.add(
        session.call$(`${callId}?`, { callId, onBusy: 'queue' }).subscribe({
          complete: () => {
            running -= 1;
            told.set(callId, 'its reply');
          },
          error: (error: unknown) => {
            if (gates.isDead()) return;
            running -= 1;
            status = 'conflict';
            const { code, message } = toMillraceError(error);
            const isNamed = code === 'conflict' && message.includes(`'${callId}'`);
            told.set(callId, isNamed ? 'the conflict' : String(error));
          },
        }),
      );
    },
    interrupt: () => session?.interrupt(),
    letOne: gates.letOne,
    isOpen: () => status === 'open' && running === 0,
    die: () => {
      gates.die();
      work.unsubscribe();
    },
  };
};

type Step = readonly [process: number, what: 'ask' | 'letOne' | 'open' | 'interrupt' | 'die'];

const steps = fc.array(
  fc.tuple(
    fc.nat(2),
    fc.oneof(
      { weight: 4, arbitrary: fc.constant('ask' as const) },
      { weight: 12, arbitrary: fc.constant('letOne' as const) },
      { weight: 4, arbitrary: fc.constant('open' as const) },
      { weight: 1, arbitrary: fc.constant('interrupt' as const) },
      { weight: 1, arbitrary: fc.constant('die' as const) },
    ),
  ),
  { minLength: 20, maxLength: 80, size: 'max' },
);

const play = (count: number, played: readonly Step[]) => {
  const place = createPlace();
  const processes = Array.from({ length: count }, () => createProcess(place));
  processes.forEach(({ open }) => open());
  let asked = 0;
  for (const [index, what] of played) {
    const at = index % count;
    const process = processes[at];
    if (process === undefined) continue;
    if (what === 'die') {
      process.die();
      processes[at] = createProcess(place);
    } else if (what === 'ask') process.ask(`c${(asked += 1)}`);
    else process[what]();
  }
  // Everyone does as documented, until there is nothing left to do.
  for (let round = 0; round < 100; round += 1) {
    for (const process of processes) {
      process.open();
      while (process.letOne());
    }
    if (processes.every(({ isOpen }) => isOpen())) break;
  }
  return { ...place, isQuiet: processes.every(({ isOpen }) => isOpen()) };
};

const stored = (store: SessionStore) => lastValueFrom(store.load$('s'));

/** What the journal has of the calls: the messages that each has stored, in which place, and what it cost. */
const recordedIn = async (driver: CallStoreDriver) => {
  const calls = createCallStore(driver);
  const found = await lastValueFrom(calls$(calls).pipe(toArray()));
  const events = await Promise.all(
    found.map(({ callId }) => lastValueFrom(replay$(calls, callId).pipe(toArray()))),
  );
  const appended = events.flat().filter((event) => event.type === 'messagesAppended');
  const ends = events.flat().filter((event) => event.type === 'postCall');
  return {
    unfinished: found.filter(({ status }) => status !== 'ended'),
    messages: new Map(
      appended.flatMap(({ messages, after }) =>
        messages.map(({ id }, at) => [id, at === 0 ? after : messages[at - 1]?.id] as const),
      ),
    ),
    usage: ends.map(({ reply }) => reply.usage).reduce(addUsage, noUsage),
    withTurn: new Set(appended.map(({ callId }) => callId)),
  };
};

describe('S6: several processes that answer one session', () => {
  it.each([2, 3])('lose no call, and have none twice (%i processes)', async (count) => {
    await fc.assert(
      fc.asyncProperty(steps, async (played) => {
        const { driver, store, told, isQuiet } = play(count, played);
        const outcomes = ['its reply', 'the conflict', 'nothing'];
        expect([...told.values()].filter((outcome) => !outcomes.includes(outcome))).toEqual([]);
        expect(isQuiet).toBe(true);
        const recorded = await recordedIn(driver);
        expect(recorded.unfinished).toEqual([]);
        const before = await stored(store);
        // Nothing is left to be done.
        createProcess({ driver, store, told }).open();
        expect(await stored(store)).toEqual(before);
        if (before === undefined) return;
        const state = before.state as SessionState;
        const tree = treeOfState(state);
        expect(new Map(tree.entries.map(({ message, after }) => [message.id, after]))).toEqual(
          recorded.messages,
        );
        expect(state.usage).toEqual(recorded.usage);
        expect(new Set(callsIn(state).map(({ callId }) => callId))).toEqual(recorded.withTurn);
        expect(callsIn(state).filter(({ hasEnded }) => !hasEnded)).toEqual([]);
        const ends = tree.entries.filter(({ message }) =>
          tree.entries.every(({ after }) => after !== message.id),
        );
        // I1
        ends.forEach(({ message }) => assertPaired(pathTo(tree, message.id)));
      }),
      { numRuns: 200 },
    );
  });
});
