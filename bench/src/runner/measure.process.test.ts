import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { atOnceJob } from '../jobs/at-once-job.js';
import { callsJob } from '../jobs/calls-job.js';
import { slowJob } from '../jobs/slow-job.js';
import { measure, measureAlone } from './measure.js';
import { ownAdapters, toolAdapters } from './adapters.js';

/** For a machine that is busy. */
const testMs = 120_000;

const options = { scripts: ['1x1-3'], before: 0, young: 1, between: 0, old: 2 };

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'bench-adapters-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const measured = (module: string, limitMs = testMs) =>
  measure({ module, job: callsJob, options, node: process.execPath, limitMs });

/** An adapter whose `open` does what the text says. */
const adapter = (name: string, text: string): string => {
  const file = join(folder, `${name}.mjs`);
  writeFileSync(file, text);
  return file;
};

describe('a process that is measured', () => {
  it.concurrent(
    'says what its calls cost',
    async () => {
      const [floor] = ownAdapters;
      const { result, seen } = await measured(floor?.module ?? '');
      const cost = { cpuMs: expect.any(Number), wallMs: expect.any(Number) };
      expect(result.costs).toEqual([{ young: cost, old: cost }]);
      expect(seen.refused).toEqual([]);
    },
    testMs,
  );

  it.concurrent(
    'trusts a mock over TLS',
    async () => {
      const module = adapter(
        'tls',
        `export const open = ({ baseURL }) => ({
          call: async () => {
            await fetch(baseURL);
            throw new Error('Reached ' + new URL(baseURL).protocol);
          },
        });`,
      );
      await expect(
        measure({
          ...{ module, job: callsJob, options, isTls: true },
          ...{ node: process.execPath, limitMs: testMs },
        }),
      ).rejects.toThrow(/^Reached https: The mock refused: There is no GET/);
    },
    testMs,
  );

  it.concurrent(
    'makes no request to the mock if it needs none',
    async () => {
      const alone = (module: string) =>
        measureAlone({ module, job: callsJob, options, node: process.execPath, limitMs: testMs });
      const { costs } = await alone(toolAdapters[0]?.module ?? '');
      expect(costs).toHaveLength(1);
      const silent = adapter('silent', `export const open = () => ({ call: async () => '' });`);
      await expect(alone(silent)).rejects.toThrow(/another one: ''/);
      const gone = adapter('mute', `process.send({}, () => process.exit(0));`);
      await expect(alone(gone)).rejects.toThrow(/something else than its result/);
    },
    testMs,
  );

  it.concurrent(
    'counts concurrent calls that fail',
    async () => {
      const module = adapter(
        'at-once',
        `export const open = () => ({ call: async () => 'Sunny.' });`,
      );
      const { result } = await measure({
        ...{ module, job: atOnceJob, options: { script: '0x0-5-2', calls: 10, warmUp: 2 } },
        ...{ node: process.execPath, limitMs: testMs },
      });
      expect(result.failed).toBe(10);
      expect(result.why).toMatch(/another one: 'Sunny\.'/);
    },
    testMs,
  );

  it.concurrent(
    'I16: counts what came out of the model before it was taken',
    async () => {
      const module = ownAdapters.find(({ name }) => name === 'millrace')?.module ?? '';
      const { result, seen } = await measure({
        ...{ module, job: slowJob, isWatching: true, node: process.execPath, limitMs: testMs },
        options: { script: '0x0-300', warmUpScript: '0x0-3', waitMs: 1 },
      });
      expect(result.takenAt).toHaveLength(300);
      expect(result.chunksAhead).toBeGreaterThan(0);
      expect(result.chunksAhead).toBeLessThanOrEqual(300);
      expect(seen.watched).toHaveLength(2);
    },
    testMs,
  );

  it.concurrent.each([
    ['throws', `export const open = () => { throw new Error('No luck.'); };`, /^No luck\.$/],
    ['opens nothing', `export const start = 1;`, /exports no 'open'/],
    ['cannot be imported', `import 'no-such-package';`, /no-such-package/],
    ['crashes', `process.exit(7);`, /before its time \(exit code 7\)/],
    [
      'says another answer',
      `export const open = () => ({ call: async () => 'Sunny.' });`,
      /another one: 'Sunny\.'/,
    ],
    [
      'says the answer at once',
      `export const open = () => ({ call: async () => 'the quick brown' });`,
      /in 0 deltas, not 3/,
    ],
    [
      'is refused',
      `export const open = ({ baseURL }) => ({
        call: async (model) => {
          const body = JSON.stringify({ model, messages: [], tools: [], stream: true });
          const headers = { authorization: 'Bearer bench-key' };
          await fetch(baseURL + '/chat/completions', { method: 'POST', headers, body });
          return '';
        },
      });`,
      /The mock refused: The tool 'lookup' is not offered/,
    ],
  ])(
    'fails with the reason if the adapter %s',
    async (name, text, why) => {
      await expect(measured(adapter(name, text))).rejects.toThrow(why);
    },
    testMs,
  );

  it.concurrent(
    'is given up if it takes too long',
    async () => {
      const text = `export const open = () => ({ call: () => new Promise(() => setTimeout(() => {}, 1e6)) });`;
      await expect(measured(adapter('hangs', text), 1_500)).rejects.toThrow(/longer than 1.5 s/);
    },
    testMs,
  );
});
