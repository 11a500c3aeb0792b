import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from '@jest/globals';

const program = fileURLToPath(new URL('../dist/bundle/bin.js', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'millrace-serve-'));

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const serving = async (...argv: readonly string[]) => {
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', ...argv], {
    cwd: directory,
    env: {},
  });
  children.push(child);
  const ended = once(child, 'close');
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text));
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => {
      reject(new Error(err));
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
      const found = /http:\S+(?=\/api\/chat)/.exec(err)?.[0];
      if (found !== undefined) resolve(found);
    });
  });
  return { child, ended, url, out: () => out, err: () => err };
};

const ask = (url: string, question: string): Promise<Response> =>
  fetch(`${url}/api/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      id: '1',
      messages: [{ role: 'user', parts: [{ type: 'text', text: question }] }],
    }),
  });

describe('npx @millrace/cli serve', () => {
  it('answers chat clients, logs on stderr, and keeps conversations for the next server', async () => {
    const first = await serving('--store', 'chats');
    expect(await (await ask(first.url, '6 * 7?')).text()).toContain('[DONE]');
    first.child.kill('SIGTERM');
    expect(await first.ended).toEqual([143, null]);
    expect(first.out()).toBe('');
    expect(first.err()).toMatch(/POST \/api\/chat 200 \d+ ms [\da-f]+/);

    const second = await serving('--store', 'chats');
    const history = await (await fetch(`${second.url}/api/chat/1`)).text();
    expect(history).toContain('6 * 7 = 42');
    second.child.kill('SIGINT');
    expect(await second.ended).toEqual([130, null]);
  });

  it('has a chat page, and keeps nothing with --no-store', async () => {
    const { url, err } = await serving('--no-store');
    expect(err()).toContain(`Chat page: ${url}\n`);
    const page = await fetch(url);
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(await page.text()).toContain('<title>Millrace</title>');
    expect((await fetch(`${url}/api/chat/1`)).status).toBe(200);
    expect(err()).toContain('in memory only');
  });

  it('shows what answers cost with --prices, and does not start with a mistake in them', async () => {
    const list = { currency: 'USD', date: '2020-01-01', prices: { '*': { input: 1, output: 1 } } };
    writeFileSync(join(directory, 'prices.json'), JSON.stringify(list));
    const { url, err } = await serving('--no-store', '--prices', 'prices.json');
    expect(err()).toMatch(/The prices of prices\.json are of 2020-01-01, \d+ days ago\./);
    expect(await (await ask(url, '6 * 7?')).text()).toMatch(
      /"cost":\{"currency":"USD","atLeast":0\.0\d+,"total":0\.0\d+\}/,
    );
    writeFileSync(join(directory, 'prices.json'), '{"currency":"USD"}');
    await expect(serving('--prices', 'prices.json')).rejects.toThrow(
      "The price file prices.json needs 'date'",
    );
  });

  it('has no page with --no-page', async () => {
    const { url, err } = await serving('--no-store', '--no-page');
    expect((await fetch(url)).status).toBe(404);
    expect(err()).not.toContain('page');
  });
});
