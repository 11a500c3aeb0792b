import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { text as textOfBody } from 'node:stream/consumers';
import { isRecord } from 'millrace/values';
import { type Effect, outermost } from '../script/script-agent.js';
import { seeded } from '../seeded.js';

/** An effect that has arrived. */
export interface Arrival extends Effect {
  /** The process that has asked for it. */
  readonly life: string;
}

/** Counts what tools do. */
export interface EffectServer {
  readonly url: string;
  /** All that has arrived of one outermost call, or of calls that go on with it, oldest first. */
  arrivals(call: string): readonly Arrival[];
  /** Is told of each arrival, before it is answered. */
  onArrival(life: string, heard: ((arrival: Arrival) => void) | undefined): void;
  /** Has all effects of a call wait until they are released. */
  hold(call: string): void;
  /** Answers those who wait for it from now on, and those who will: of one item, or of the whole call. */
  release(call: string, item?: string): void;
  close(): Promise<void>;
}

/** Tools whose effect is answered only when it is released. */
const gated: ReadonlySet<string> = new Set(['wait']);

/** Answers come up to so much later, in milliseconds: kills fall between what is done and what is written down. */
const latestMs = 8;

/** Starts a server on loopback that takes effects at `POST /effects`. */
export const startEffectServer = async (seed: number): Promise<EffectServer> => {
  const random = seeded(seed);
  const all = new Map<string, Arrival[]>();
  const listeners = new Map<string, (arrival: Arrival) => void>();
  const waiting = new Map<string, { readonly item: string; readonly answer: () => void }[]>();
  const held = new Set<string>();
  const released = new Set<string>();
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const arrival: unknown = JSON.parse(await textOfBody(request));
    if (!isArrival(arrival)) throw new Error('This is no effect.');
    const call = outermost(arrival.callId);
    all.set(call, [...(all.get(call) ?? []), arrival]);
    const answer = (): void => void response.end('{}');
    const { tool, item } = arrival;
    const isGated = gated.has(tool) || held.has(call);
    if (!isGated || released.has(call) || released.has(`${call} ${item}`))
      setTimeout(answer, random.next() * latestMs);
    else waiting.set(call, [...(waiting.get(call) ?? []), { item, answer }]);
    listeners.get(arrival.life)?.(arrival);
  };
  const server = createServer((request, response) => {
    take(request, response).catch(() => response.writeHead(400).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('There is no port.');
  return {
    url: `http://127.0.0.1:${address.port}/effects`,
    arrivals: (call) => all.get(call) ?? [],
    onArrival: (life, heard) => {
      if (heard === undefined) listeners.delete(life);
      else listeners.set(life, heard);
    },
    hold: (call) => held.add(call),
    release: (call, item) => {
      released.add(item === undefined ? call : `${call} ${item}`);
      const arrivals = waiting.get(call) ?? [];
      const isDue = (it: { readonly item: string }): boolean =>
        item === undefined || it.item === item;
      waiting.set(
        call,
        arrivals.filter((it) => !isDue(it)),
      );
      arrivals.filter(isDue).forEach(({ answer }) => answer());
    },
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
};

const isArrival = (value: unknown): value is Arrival =>
  isRecord(value) &&
  ['tool', 'item', 'callId', 'key', 'seed', 'life'].every(
    (name) => typeof value[name] === 'string',
  ) &&
  typeof value['isIdempotent'] === 'boolean';
