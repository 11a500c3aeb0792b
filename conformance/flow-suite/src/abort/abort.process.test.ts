import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type AnswerServer, startAnswerServer } from '../server/start-answer-server.js';
import { measureStops, type Stops } from './measure-stops.js';
import type { Stop } from '../stops.js';

const toolMs = 2_000;

describe('calls over HTTP that are stopped', () => {
  let server: AnswerServer;
  let measured: readonly Stops[];

  beforeAll(async () => {
    server = await startAnswerServer();
    measured = await measureStops(server, { rounds: 2, toolMs });
  }, 180_000);
  afterAll(() => server.close());

  it.each<{ row: string; stop: Stop }>([
    { row: 'I5', stop: 'unsubscribe' },
    { row: 'S2', stop: 'AbortSignal' },
    { row: 'S1', stop: 'interrupt' },
  ])(
    '$row: $stop closes the socket, waits for no tool and leaves the session whole',
    ({ stop }) => {
      const [inStream, inTool] = measured.filter((one) => one.stop === stop);
      expect([inStream?.place, inTool?.place]).toEqual(['stream', 'tool']);
      expect([inStream?.wrongs, inTool?.wrongs]).toEqual([[], []]);
      // The machine may be busy with other things; only one that waited for the tool would take so long.
      expect(inStream?.closed?.worst).toBeLessThan(toolMs / 2);
      expect(inStream?.settled.worst).toBeLessThan(toolMs / 2);
      expect(inTool?.settled.worst).toBeLessThan(toolMs / 2);
    },
  );
});
