import { setTimeout as wait } from 'node:timers/promises';
import { measureRounds, type Outcome } from '../runner/outcomes.js';
import { cellsOf } from '../runner/show.js';
import { ask, bodyOf, followOf, newChatId, openMany, postOf } from './client.js';
import { fastPlan } from './plan.js';
import type { ServeBench, ServeReport } from './row.js';
import { handFloor, type ServerName } from './server.js';
import { withServer } from './server-process.js';

/** What the server process holds for each, in bytes: on the heap and in buffers, after a garbage collection. */
interface Held {
  /** A call whose model says nothing, with the stream of its client. */
  readonly call: number;
  /** One more stream of the same call. */
  readonly follower: number;
}

const silent = { ...fastPlan, silentMs: 3_600_000 };

/** What the server holds for calls and streams that are silent. */
export const memory = async (bench: ServeBench): Promise<ServeReport> => {
  const count = bench.isSmall ? 20 : 400;
  const names: readonly ServerName[] = [handFloor, 'serve, in process', 'serve, files'];
  const outcomes = await measureRounds(
    { ...bench, adapters: names.map((name) => ({ name, floor: handFloor })) },
    'memory',
    ({ name }: { readonly name: ServerName }) => measure(name, count),
  );
  return {
    tables: [
      {
        title: `memory: ${count} silent calls, each with its stream, and ${count} more streams of one silent call`,
        about:
          'held for each: on the heap and in buffers, after a garbage collection, with its socket. The floor is node:http by hand: it keeps a response open.',
        columns: [
          { name: 'server', isWords: true },
          ...['call kB', 'follower kB'].flatMap((name) => [
            { name },
            { name: 'ratio' },
            { name: 'range' },
          ]),
        ],
        rows: outcomes.map((outcome) => rowOf(outcome, outcomes)),
      },
    ],
    raw: outcomes,
  };
};

const measure = (name: ServerName, count: number): Promise<Held> =>
  withServer(
    name,
    async (server) => {
      for (let time = 0; time < 30; time += 1) await ask(server.port, fastPlan);
      const heldBy = async (text: () => string): Promise<number> => {
        // What the first ones leave behind is not held for each.
        await opened(server.port, Math.ceil(count / 5), text);
        const before = await server.used(true);
        await opened(server.port, count, text);
        const after = await server.used(true);
        return (after.heldBytes - before.heldBytes) / count;
      };
      const chatId = newChatId();
      const call = await heldBy(() => postOf(bodyOf(silent)));
      await opened(server.port, 1, () => postOf(bodyOf(silent, chatId)));
      return { call, follower: await heldBy(() => followOf(chatId)) };
    },
    { maxCalls: 10_000 },
  );

/** Opens streams, and waits until each has its first event, and the server has nothing left to do. */
const opened = async (port: number, count: number, text: () => string): Promise<void> => {
  const sockets = await openMany(port, count, text);
  while (sockets.some((socket) => socket.bytesRead < headBytes)) await wait(50);
  await wait(500);
};

/** A response with its first event has more. */
const headBytes = 200;

const rowOf = (outcome: Outcome<Held>, all: readonly Outcome<Held>[]): readonly string[] => {
  const { name } = outcome.adapter;
  if (outcome.failure !== undefined) return [name, `failed: ${outcome.failure}`];
  return [
    name,
    ...cellsOf(outcome, all, ({ call }) => call / 1_000),
    ...cellsOf(outcome, all, ({ follower }) => follower / 1_000),
  ];
};
