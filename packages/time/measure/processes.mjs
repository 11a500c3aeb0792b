import { spawn } from 'node:child_process';
import console from 'node:console';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setTimeout as wait } from 'node:timers/promises';

/** Prints a word, and how long this process has run in milliseconds. */
export const say = (word) => console.log(word, Math.round(performance.now()), 'ms');

/** Runs a program until 3 seconds after its first word, and 8 seconds later twice at the same time, for 20 seconds each. */
export async function measure(file, program) {
  const [directory, part] = process.argv.slice(2);
  if (directory) return program(directory, part === 'first');
  const folder = mkdtempSync(join(tmpdir(), 'sleep-'));
  const run = (name) => {
    const child = spawn(process.execPath, [file, folder, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.on('data', (said) => console.log(`${name} process: ${said}`.trim()));
    return { child, exited: once(child, 'exit') };
  };
  const first = run('first');
  await once(first.child.stdout, 'data');
  await wait(3000);
  await end(first);
  await wait(8000);
  const others = ['second', 'third'].map(run);
  await wait(20_000);
  await Promise.all(others.map(end));
  rmSync(folder, { recursive: true });
}

function end({ child, exited }) {
  child.kill('SIGKILL');
  return exited;
}
