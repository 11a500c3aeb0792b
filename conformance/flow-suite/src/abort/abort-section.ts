import type { Spread } from '../spread.js';
import { startAnswerServer } from '../server/start-answer-server.js';
import type { Section } from '../table.js';
import { measureStops, type Stops, type StopsOptions } from './measure-stops.js';

/** What the median of a row may be, in milliseconds. */
const mostMs = 20;

const header = ['stop', 'socket closed', 'worst', 'call settled', 'worst'];

/** Measures how fast a stop is. */
export const abortSection = async (options: StopsOptions): Promise<Section> => {
  const server = await startAnswerServer();
  try {
    const measured = await measureStops(server, options);
    return {
      title: `Calls over HTTP that are stopped, ${options.rounds} of each, in milliseconds`,
      header,
      rows: measured.map(rowOf),
      wrongs: measured.flatMap(wrongsOf),
    };
  } finally {
    await server.close();
  }
};

const nameOf = ({ stop, place }: Stops): string =>
  place === 'stream' ? `${stop} in a stream` : `${stop} in a deaf tool`;

const rowOf = (one: Stops): readonly string[] => [
  nameOf(one),
  ...shown(one.closed),
  ...shown(one.settled),
];

const shown = (spread: Spread | undefined): readonly string[] =>
  spread === undefined ? ['', ''] : [spread.median.toFixed(1), spread.worst.toFixed(1)];

const wrongsOf = (one: Stops): readonly string[] => {
  const medians = [one.closed?.median ?? 0, one.settled.median];
  const wrongs = medians.some((median) => median > mostMs)
    ? [...one.wrongs, `it takes more than ${mostMs} ms`]
    : one.wrongs;
  return wrongs.map((wrong) => `${nameOf(one)}: ${wrong}`);
};
