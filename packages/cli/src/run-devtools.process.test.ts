import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';

const program = fileURLToPath(new URL('../dist/bundle/bin.js', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'millrace-devtools-'));

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const where = { cwd: directory, env: {} };

const started = async (...argv: readonly string[]) => {
  const child = spawn(process.execPath, [program, ...argv], where);
  children.push(child);
  const ended = once(child, 'close');
  let err = '';
  const address = await new Promise<URL>((resolve, reject) => {
    child.once('exit', () => {
      reject(new Error(err));
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
      const found = /^Devtools: (http:\S+)$/m.exec(err)?.[1];
      if (found !== undefined) resolve(new URL(found));
    });
  });
  return { child, ended, address };
};

/** Reads the feed until it contains a text. */
const feedUntil = async ({ origin, hash }: URL, wanted: string): Promise<string> => {
  const headers = { authorization: `Bearer ${hash.replace('#token=', '')}` };
  const leaving = new AbortController();
  const { body } = await fetch(`${origin}/api/feed`, { headers, signal: leaving.signal });
  let all = '';
  const decoder = new TextDecoder();
  for await (const bytes of body ?? []) {
    all += decoder.decode(bytes as Uint8Array, { stream: true });
    if (all.includes(wanted)) break;
  }
  leaving.abort();
  return all;
};

describe('npx @millrace/cli devtools', () => {
  it('shows the runs of a store on a page, until a signal', async () => {
    spawnSync(process.execPath, [program, '--store', 'runs', '6 * 7?'], where);
    const { child, ended, address } = await started('devtools', '--store', 'runs', '--port', '0');
    expect(await (await fetch(address.origin)).text()).toContain(
      '<title>Millrace devtools</title>',
    );
    const feed = await feedUntil(address, '6 * 7?');
    expect(feed).toContain('"source":"store"');
    expect(feed).toContain('"status":"done"');
    expect(feed).not.toContain('unforkable');
    child.kill('SIGINT');
    expect(await ended).toEqual([130, null]);
  });

  it('shows the calls of a server with --devtools', async () => {
    const { child, ended, address } = await started(
      ...['serve', '--port', '0', '--devtools', '--no-store', '--no-page'],
    );
    expect(await feedUntil(address, 'holdable')).toContain('"title":"Millrace"');
    child.kill('SIGTERM');
    expect(await ended).toEqual([143, null]);
  });
});
