import { describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deltaOf, fastPlan, readPlan, stampsIn } from './plan.js';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

const serveBench = (
  ...args: readonly string[]
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [main, 'serve', ...args]);
    let [out, err] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, out, err }));
  });

describe('a plan', () => {
  it('is read as it is written, and nothing else is one', () => {
    expect(readPlan(JSON.stringify(fastPlan))).toEqual(fastPlan);
    expect(() => readPlan('{"deltas":1}')).toThrow('is no plan');
  });

  it('has deltas of its size, whose times can be read', () => {
    expect(deltaOf({ ...fastPlan, size: 9 })).toHaveLength(9);
    const before = performance.timeOrigin + performance.now();
    const delta = deltaOf({ ...fastPlan, size: 40, isStamped: true });
    const [stamp] = stampsIn(`{"delta":"${delta}"}`);
    expect(delta).toHaveLength(40);
    expect(stamp).toBeGreaterThan(before - 1);
  });
});

describe('the bench of the server', () => {
  it('measures servers in processes of their own, each beside the floor', async () => {
    const { code, out, err } = await serveBench('--small', '--only', 'cost');
    expect({ code, err }).toMatchObject({ code: 0 });
    expect(out).toMatch(/^hono( +[\d.]+ +1\.00× +1\.00–1\.00){3}/mu);
    for (const name of ['response', 'serve, in process', 'serve, files']) {
      expect(out).toMatch(new RegExp(`^${name}( +[\\d.]+ +[\\d.]+× +[\\d.]+–[\\d.]+){3}`, 'mu'));
    }
  });

  it('sends what no honest client sends, and every answer is right', async () => {
    const { code, out } = await serveBench('--small', '--only', 'hostile');
    expect(code).toBe(0);
    expect(out).toMatch(/^10 MB declared, none sent +413 +(?:yes|no) +yes/mu);
    expect(out).not.toMatch(/ NO /u);
  });

  it('has clients that hardly read, connections that are only open, and many at the same time', async () => {
    const { code, out } = await serveBench(
      '--small',
      '--only',
      'slow,idle,concurrent,together,memory',
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^serve, files +own calls +5 +[\d.]+/mu);
    expect(out).toMatch(/^streams of one silent call +20 +[\d.]+/mu);
    expect(out).toMatch(/^serve, files( +[\d.]+ +[\d.]+× +[\d.]+){2}$/mu);
    expect(out).toMatch(/^serve, files( +[\d.]+){3} +[\d.]+×$/mu);
    expect(out).toMatch(/^serve, in process( +[\d.]+ +[\d.]+× +[\d.]+–[\d.]+){2}$/mu);
  });

  (existsSync('/usr/sbin/nginx') ? it : it.skip)(
    'shows that only heartbeats keep a silent stream open behind nginx',
    async () => {
      const { code, out } = await serveBench('--small', '--only', 'proxy');
      expect(code).toBe(0);
      expect(out).toMatch(/^nginx +300 +[3-9] +[\d.]+ +yes$/mu);
      expect(out).toMatch(/^nginx +5000 +0 +[\d.]+ +no +yes$/mu);
      expect(out).toMatch(/^direct +5000 +0 +[\d.]+ +yes$/mu);
    },
  );

  it('names what it measures, and refuses the rest', async () => {
    const { out } = await serveBench('--help');
    for (const row of [
      'cost',
      'concurrent',
      'together',
      'memory',
      'slow',
      'proxy',
      'hostile',
      'idle',
    ]) {
      expect(out).toMatch(new RegExp(`^  ${row} `, 'mu'));
    }
    expect(await serveBench('--only', 'nothing')).toMatchObject({ code: 2 });
  });
});
