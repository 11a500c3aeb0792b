import type { Outcome } from '../runner/outcomes.js';
import { measureRounds, medianOf, ratiosOf } from '../runner/outcomes.js';
import { quantile } from '../quantile.js';
import { cellsOf, shown, shownRatio } from '../runner/show.js';
import type { ServeBench, ServeReport } from './row.js';
import { type Answer, ask } from './client.js';
import { fastPlan, type Plan } from './plan.js';
import { type ServerName, serverNames } from './server.js';
import { type ServerProcess, withServer } from './server-process.js';

/** What a server needs for short answers and for long ones. */
interface Cost {
  readonly firstMs: readonly number[];
  readonly deltaMs: readonly number[];
  /** CPU of a short answer, in microseconds. */
  readonly answerUs: number;
  /** CPU of an event of a long answer, in microseconds: of the first answers, and of later ones. */
  readonly youngUs: number;
  readonly oldUs: number;
  readonly perSecond: number;
  readonly bytes: number;
}

/** What a server costs beside a handler by hand. */
export const cost = async (bench: ServeBench): Promise<ServeReport> => {
  const subjects = serverNames.map((name) => ({ name, floor: 'hono' }));
  const outcomes = await measureRounds(
    { ...bench, adapters: subjects },
    'cost',
    ({ name }: { readonly name: ServerName }) =>
      withServer(name, (server) => measure(server, bench.isSmall)),
  );
  return {
    tables: [
      {
        title: 'cost: what a server needs beside a handler by hand (hono, streamSSE)',
        about:
          'answer: CPU of an answer of 20 deltas. young: CPU of an event in the first long answers, old: in later ones, all of the server process. /s: events in a second of one core, old. first, delta: from the request to the first event and to the first delta, one request at a time.',
        columns: [
          { name: 'server', isWords: true },
          ...['answer µs', 'young µs', 'old µs'].flatMap((name) => [
            { name },
            { name: 'ratio' },
            { name: 'range' },
          ]),
          ...[
            '/s',
            'first p50 ms',
            'ratio',
            'p99',
            'ratio',
            'delta p50 ms',
            'ratio',
            'B/event',
          ].map((name) => ({ name })),
        ],
        rows: outcomes.map((outcome) => rowOf(outcome, outcomes)),
      },
    ],
    raw: outcomes,
  };
};

const measure = async (server: ServerProcess, isSmall: boolean): Promise<Cost> => {
  const short = { ...fastPlan, deltas: 20 };
  const long = { ...fastPlan, deltas: isSmall ? 500 : 10_000 };
  const [warm, measured, longs] = isSmall ? [5, 20, 1] : [100, 300, 3];
  await asked(server, long, 1);
  const young = await timed(server, long, 1);
  await asked(server, short, warm);
  const shorts = await timed(server, short, measured);
  await asked(server, long, longs);
  const old = await timed(server, long, longs);
  return {
    firstMs: shorts.answers.map(({ firstMs }) => firstMs),
    deltaMs: shorts.answers.map(({ deltaMs }) => deltaMs),
    answerUs: (shorts.cpuMs * 1_000) / measured,
    youngUs: perEvent(young),
    oldUs: perEvent(old),
    perSecond: 1e6 / perEvent(old),
    bytes: (old.answers[0]?.bytes ?? NaN) / (old.answers[0]?.events ?? NaN),
  };
};

interface Timed {
  readonly answers: readonly Answer[];
  readonly cpuMs: number;
}

const perEvent = ({ answers, cpuMs }: Timed): number =>
  (cpuMs * 1_000) / answers.reduce((sum, { events }) => sum + events, 0);

const timed = async (server: ServerProcess, plan: Plan, times: number): Promise<Timed> => {
  const before = await server.used();
  const answers = await asked(server, plan, times);
  const after = await server.used();
  return { answers, cpuMs: after.cpuMs - before.cpuMs };
};

/** One after the other. Each is whole, or nothing is measured. */
const asked = async ({ port }: ServerProcess, plan: Plan, times: number) => {
  const answers: Answer[] = [];
  for (let time = 0; time < times; time += 1) {
    const answer = await ask(port, plan);
    if (!answer.isDone || answer.events < plan.deltas) throw new Error('An answer is not whole.');
    answers.push(answer);
  }
  return answers;
};

const rowOf = (outcome: Outcome<Cost>, all: readonly Outcome<Cost>[]): readonly string[] => {
  const { name } = outcome.adapter;
  if (outcome.failure !== undefined) return [name, `failed: ${outcome.failure}`];
  const at = (pick: (it: Cost) => readonly number[], part: number) => (it: Cost) =>
    quantile(pick(it), part);
  const cell = (pick: (it: Cost) => number): string => shown(medianOf(outcome, pick));
  const ratio = (pick: (it: Cost) => number): string => shownRatio(ratiosOf(outcome, all, pick));
  const first50 = at(({ firstMs }) => firstMs, 0.5);
  const first99 = at(({ firstMs }) => firstMs, 0.99);
  const delta50 = at(({ deltaMs }) => deltaMs, 0.5);
  return [
    name,
    ...[(it: Cost) => it.answerUs, (it: Cost) => it.youngUs, (it: Cost) => it.oldUs].flatMap(
      (pick) => cellsOf(outcome, all, pick),
    ),
    cell(({ perSecond }) => perSecond),
    cell(first50),
    ratio(first50),
    cell(first99),
    ratio(first99),
    cell(delta50),
    ratio(delta50),
    cell(({ bytes }) => bytes),
  ];
};
