import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type AgentEvent, isEvent, type Reply } from 'millrace';
import { type DbosEngine, openDbos } from '@millrace/dbos';
import { startPostgres } from '@millrace/postgres-server';
import {
  concatMap,
  filter,
  first,
  firstValueFrom,
  ignoreElements,
  lastValueFrom,
  merge,
  type Observable,
  of,
  reduce,
  ReplaySubject,
  scan,
  Subject,
} from 'rxjs';
import { bundleLife } from '../driver/bundle-life.js';
import { type Arrival, type EffectServer, startEffectServer } from '../effects/effect-server.js';
import { itemOf } from '../script/script-agent.js';
import { agentOf, tripleTask } from './fleet-plan.js';
import { openFleet } from './fleet.js';
import { engineOptions } from './orders.js';

// Processes may have to wait for a busy machine.
const limitMs = 180_000;

/** The tools of a batch start (+) and end (-) in these orders, independent of their positions in the message. */
const sequences = [
  ['+2', '+0', '+1', '-1', '-2', '-0'],
  ['+1', '-1', '+2', '+0', '-0', '-2'],
  ['+0', '+1', '-1', '+2', '-2', '-0'],
] as const;

interface Case {
  readonly callId: string;
  readonly sequence: readonly string[];
  /** The number of its points that it has passed when its worker is killed. */
  readonly passed: number;
}

const cases = sequences.flatMap((sequence, nth) =>
  [...sequence.keys(), sequence.length].map((passed): Case => ({
    callId: `f${nth}-${passed}`,
    sequence,
    passed,
  })),
);

interface Result {
  readonly reply: Reply;
  readonly events: readonly AgentEvent[];
  readonly arrivals: readonly Arrival[];
}

const results = new Map<string, Result>();

const itemAt = (point: string): string => `1.${point.slice(1)}`;

/** Emits once the result of a tool call is recorded. */
const recorded$ = ({ store }: DbosEngine, callId: string, index: string): Observable<unknown> =>
  merge(of(undefined), store.calls.driver.changes$(callId)).pipe(
    concatMap(() =>
      store.calls.driver.read$(callId, { kind: 'step' }).pipe(
        reduce((isThere, records) => {
          const isIn = records.some(({ name }) => name === `${callId}/1/${index}`);
          return isThere || isIn;
        }, false),
      ),
    ),
    first(Boolean),
  );

/** Starts a call, and leads it to the point at which its worker is to be killed. Resolves to a function that leads it to its end. */
const toItsPoint = async (
  { callId, sequence, passed }: Case,
  engine: DbosEngine,
  server: EffectServer,
  arrived$: Observable<Arrival>,
): Promise<() => Promise<void>> => {
  server.hold(callId);
  await firstValueFrom(engine.start$(agentOf('rerun'), tripleTask, { callId }));
  const seen$ = new ReplaySubject<AgentEvent>(Infinity);
  engine.attach$(callId).subscribe(seen$);
  const asked = await firstValueFrom(
    seen$.pipe(
      filter((event) => isEvent(event, 'approvalRequested')),
      scan(
        (all, event) => all.set(itemOf(event.toolCall), event),
        new Map<string, Extract<AgentEvent, { readonly type: 'approvalRequested' }>>(),
      ),
      first(({ size }) => size === 3),
    ),
  );
  const decide = async (point: string): Promise<void> => {
    const event = asked.get(itemAt(point));
    if (event === undefined) throw new Error(`There is no approval for ${point}.`);
    await lastValueFrom(engine.decide$(event, true), { defaultValue: undefined });
  };
  for (const point of sequence.slice(0, passed)) {
    const item = itemAt(point);
    if (point.startsWith('+')) {
      const isThere$ = arrived$.pipe(first((it) => it.callId === callId && it.item === item));
      const isThere = firstValueFrom(isThere$);
      await decide(point);
      await isThere;
    } else {
      server.release(callId, item);
      await firstValueFrom(recorded$(engine, callId, point.slice(1)));
    }
  }
  return async () => {
    server.release(callId);
    for (const point of sequence.slice(passed)) if (point.startsWith('+')) await decide(point);
    const events = await lastValueFrom(
      seen$.pipe(reduce((all, event) => [...all, event], new Array<AgentEvent>())),
    );
    const reply = await firstValueFrom(engine.reply$(callId));
    results.set(callId, { reply, events, arrivals: server.arrivals(callId) });
  };
};

beforeAll(async () => {
  const database = await startPostgres();
  const server = await startEffectServer(1);
  const program = await bundleLife('fleet/worker.js');
  const schema = `position_${Date.now().toString(36)}`;
  const leaseMs = 1_500;
  const engine = openDbos(database.url, engineOptions({ schema, leaseMs }));
  const ready$ = new ReplaySubject<string>(Infinity);
  const fleet = openFleet(
    program.path,
    {
      url: database.url,
      schema,
      leaseMs,
      recoverMs: 300,
      effectsUrl: server.url,
      concurrency: cases.length,
      chunkMs: 0,
      toolMs: [0, 10],
    },
    ({ type }, { life }) => {
      if (type === 'ready') ready$.next(life);
    },
  );
  try {
    const arrived$ = new Subject<Arrival>();
    server.onArrival('w1', (arrival) => arrived$.next(arrival));
    fleet.start();
    const led = await Promise.all(cases.map((it) => toItsPoint(it, engine, server, arrived$)));
    fleet.start();
    await firstValueFrom(ready$.pipe(first((life) => life === 'w2')));
    fleet.workers.filter(({ life }) => life === 'w1').forEach((worker) => fleet.kill(worker));
    await Promise.all(led.map((toItsEnd) => toItsEnd()));
    expect(fleet.wrongs).toEqual([]);
  } finally {
    await fleet.close();
    await lastValueFrom(engine.close$().pipe(ignoreElements()), { defaultValue: undefined });
    await server.close();
    await program.remove();
    await database.stop();
  }
}, limitMs);

afterAll(() => results.clear());

describe('parallel tools, started in another order than that of their positions', () => {
  it.each(cases)(
    'S6: have their effects once and their results in place, if the worker is killed after $passed of $sequence',
    ({ callId, sequence, passed }) => {
      const { reply, events, arrivals } = results.get(callId) ?? {};
      const before = sequence.slice(0, passed);
      const isOpen = (index: number): boolean =>
        before.includes(`+${index}`) && !before.includes(`-${index}`);
      const lives = [0, 1, 2].map((index) =>
        arrivals?.filter(({ item }) => item === `1.${index}`).map(({ life }) => life),
      );
      // What was open is done again under the same key, by which a service knows it.
      expect(lives).toEqual(
        [0, 1, 2].map((index) => {
          if (isOpen(index)) return ['w1', 'w2'];
          return before.includes(`+${index}`) ? ['w1'] : ['w2'];
        }),
      );
      expect(new Set(arrivals?.map(({ key, seed }) => `${key} ${seed}`)).size).toBe(3);
      const uncertain = events?.flatMap((event) =>
        event.type === 'uncertain' ? [itemOf(event.toolCall)] : [],
      );
      expect(uncertain?.toSorted()).toEqual([0, 1, 2].filter(isOpen).map((index) => `1.${index}`));
      expect(reply?.toolCalls.map(({ output }) => output)).toEqual(
        [0, 1, 2].map((index) => `refund 1.${index} is done`),
      );
      expect(reply?.text).toBe('Done: refund 1.0 is done; refund 1.1 is done; refund 1.2 is done');
    },
  );
});
