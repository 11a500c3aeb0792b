import type { AnswerServer } from '../server/start-answer-server.js';
import { type Spread, spreadOf } from '../spread.js';
import { measureStop, type Place, type Stopped } from './measure-stop.js';
import { stopNames, type Stop } from '../stops.js';

/** How stops are measured. */
export interface StopsOptions {
  /** How often each. */
  readonly rounds: number;
  /** How long the tool takes that ignores its signal, in milliseconds. */
  readonly toolMs: number;
  readonly onProgress?: (what: string) => void;
}

/** What came of all stops of one way at one place. */
export interface Stops {
  readonly stop: Stop;
  readonly place: Place;
  /** Milliseconds until the server saw the socket close; absent where no response was under way. */
  readonly closed: Spread | undefined;
  /** Milliseconds until whoever made the call heard of its end. */
  readonly settled: Spread;
  /** What was not as it must be, each once. */
  readonly wrongs: readonly string[];
}

/** Stops calls in each way and at each place, one after the other. */
export const measureStops = async (
  server: AnswerServer,
  { rounds, toolMs, onProgress = () => undefined }: StopsOptions,
): Promise<readonly Stops[]> => {
  // The vendor's SDK is loaded with the first request.
  await measureStop(server, 'interrupt', 'stream', 0);
  const measured = [];
  for (const { stop, place } of cases) {
    onProgress(`${stop} in a ${place}`);
    const stopped: Stopped[] = [];
    for (let round = 0; round < rounds; round += 1) {
      stopped.push(await measureStop(server, stop, place, toolMs));
    }
    measured.push({ stop, place, stopped });
  }
  return Promise.all(measured.map(summaryOf));
};

const places: readonly Place[] = ['stream', 'tool'];
const cases = places.flatMap((place) => stopNames.map((stop) => ({ stop, place })));

const summaryOf = async ({
  stopped,
  ...what
}: Pick<Stops, 'stop' | 'place'> & { readonly stopped: readonly Stopped[] }): Promise<Stops> => {
  const closedMs = stopped.flatMap((one) => one.closedMs ?? []);
  const wrongs = await Promise.all(stopped.map((one) => one.wrongs));
  return {
    ...what,
    closed: closedMs.length === 0 ? undefined : spreadOf(closedMs),
    settled: spreadOf(stopped.map(({ settledMs }) => settledMs)),
    wrongs: [...new Set(wrongs.flat())],
  };
};
