import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { isRecord } from 'millrace/values';
import type { SessionStore } from 'millrace/sessions';
import { lastValueFrom } from 'rxjs';

const saves = 40;

/** Increments a stored count with retries on conflict, and prints the versions it got. */
const counting = `
  import { lastValueFrom } from 'rxjs';
  const versions = [];
  while (versions.length < ${saves}) {
    const stored = await lastValueFrom(sessions.load$('s'));
    const state = { count: (stored?.state.count ?? 0) + 1 };
    try {
      versions.push(await lastValueFrom(sessions.save$('s', state, stored?.version)));
    } catch (error) {
      if (error.code !== 'conflict') throw error;
    }
  }
  process.stdout.write(versions.join(' '), () => process.exit());
`;

/**
 * Lets several processes count in one session in parallel: no increment is lost, and no version is used twice.
 * `opening` is a script that opens a store as `sessions`.
 */
export const countInProcesses = async (
  sessions: SessionStore,
  opening: string,
  parameters: readonly string[],
): Promise<void> => {
  const said = await Promise.all(
    ['one', 'two', 'three'].map(() => outputOf(opening + counting, parameters)),
  );
  const versions = said.flatMap((text) => text.split(' ').map(Number));
  strictEqual(new Set(versions).size, said.length * saves);
  const stored = await lastValueFrom(sessions.load$('s'));
  ok(isRecord(stored));
  deepStrictEqual(stored.state, { count: said.length * saves });
  strictEqual(stored.version, Math.max(...versions));
};

const outputOf = (script: string, parameters: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, ...parameters], {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const said: string[] = [];
    child.once('error', reject);
    child.stdout.setEncoding('utf8').on('data', (text: string) => said.push(text));
    child.once('close', (code) =>
      code === 0 ? resolve(said.join('')) : reject(new Error(`It ended with ${code}.`)),
    );
  });
