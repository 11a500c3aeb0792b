import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const limitMs = 240_000;
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url));

const bench = (
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args]);
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
  });

describe('the bench', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bench-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it.concurrent(
    'measures adapters in processes of their own, and prints a table',
    async () => {
      const json = join(folder, 'all.json');
      const { code, out, err } = await bench(
        ...[
          '--small',
          '--only',
          'a',
          '--adapters',
          'floor,millrace',
          '--rounds',
          '2',
          '--json',
          json,
        ],
      );
      expect({ code, err }).toMatchObject({ code: 0 });
      expect(out).toMatch(/^floor( +[\d.]+ +1\.00× +1\.00–1\.00){2} +[\d.]+ +1\.00×$/m);
      expect(out).toMatch(/^millrace( +[\d.]+ +[\d.]+× +[\d.]+–[\d.]+){2} +[\d.]+ +[\d.]+×$/m);
      expect(err).toContain('round 2 of 2: floor');
      const cost = { cpuMs: expect.any(Number), wallMs: expect.any(Number) };
      const round = { young: cost, old: cost };
      const all: unknown = JSON.parse(readFileSync(json, 'utf8'));
      expect(all).toMatchObject({
        machine: { cores: expect.any(Number), memoryGb: expect.any(Number) },
        versions: { bench: { openai: expect.any(String) } },
        results: [
          {
            scenario: 'a',
            node: process.versions.node,
            raw: {
              calls: { before: 0, young: 1, between: 0, old: 1 },
              outcomes: [
                { adapter: 'floor', floor: 'floor', rounds: [round, round] },
                { adapter: 'millrace', floor: 'floor', rounds: [round, round] },
              ],
            },
          },
        ],
      });
      expect(await bench('chart', json)).toMatchObject({ code: 0, err: '' });
      const svg = readFileSync(join(folder, 'all.svg'), 'utf8');
      expect(svg.match(/<g class="row">/g)).toHaveLength(2);
      expect(svg).toContain(`Node ${process.versions.node}`);
    },
    limitMs,
  );

  it.concurrent(
    'knows every scenario',
    async () => {
      const { code, out, err } = await bench(
        '--small',
        '--only',
        'd,e,f,h,i,j,k,l',
        '--adapters',
        'floor',
      );
      expect({ code, err }).toMatchObject({ code: 0 });
      for (const letter of ['d', 'e', 'f', 'h', 'i', 'j', 'k', 'l'])
        expect(out).toMatch(new RegExp(`^\\(${letter}\\) `, 'm'));
      expect(out.match(/^floor +-?[\d.]/gm)).toHaveLength(7);
      expect(out).toMatch(/^sqlite +[\d.]+ +[\d.]+× /m);
      expect(out).toMatch(/^millrace-approve +-?[\d.]+ +-?[\d.]+× /m);
    },
    limitMs,
  );

  it.concurrent(
    'says what there is',
    async () => {
      expect(await bench('--help')).toMatchObject({ code: 0, err: '' });
      const { code, out, err } = await bench('--only', 'z');
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toContain(`There is no scenario 'z'`);
      expect(await bench('chart', '--help')).toMatchObject({ code: 0, err: '' });
      const missing = await bench('chart', join(folder, 'no.json'));
      expect(missing).toMatchObject({ code: 2, out: '' });
      expect(missing.err).toMatch(/no\.json is no file of JSON[^]*bench:chart -- --help/);
    },
    limitMs,
  );
});
