import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Claim } from 'millrace/journal';
import { firstValueFrom, lastValueFrom, ReplaySubject, retry, toArray } from 'rxjs';
import { closeStore } from '../close-store.test-support.js';
import { killWhileBranching } from '../memory/branching-process.test-support.js';
import type { DatabaseStore } from '../store.js';
import { killedAfter, namesOfBatches, startProcess } from '../writing-process.test-support.js';
import { openSqlite } from './open-sqlite.js';

// A disk that others use, too, takes its time to keep what it is given.
jest.setTimeout(240_000);

let root: string;
const stores: DatabaseStore[] = [];
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'sqlite-crash-'));
});
afterAll(async () => {
  await Promise.all(stores.map((store) => closeStore(store)));
  await rm(root, { recursive: true });
});

const opening = `
  import { openSqlite } from '@millrace/store/sqlite';
  const store = openSqlite(process.argv[1], { leaseMs: 2000 });
  const calls = store.calls.driver;
`;
let made = 0;
const newPath = (): string => join(root, `${(made += 1)}.db`);
const open = (path: string): DatabaseStore => {
  const store = openSqlite(path, { leaseMs: 2_000 });
  stores.push(store);
  return store;
};
const read = async (store: DatabaseStore, callId = 'c') =>
  (await lastValueFrom(store.calls.driver.read$(callId).pipe(toArray()))).flat();

describe('processes that are killed', () => {
  it('S6: have lost nothing that was confirmed, and their calls are free', async () => {
    for (const batches of [0, 3, 17]) {
      const path = newPath();
      // Its lease would last for a minute. Where processes cannot be looked up, others wait for the end of it.
      const leaseMs = process.platform === 'linux' ? '60000' : '2000';
      const last = await killedAfter(opening.replace('2000', leaseMs), [path], batches);
      const store = open(path);
      const records = await read(store);
      expect(records.length % 3).toBe(0);
      expect(records.length).toBeGreaterThanOrEqual(3 * (last + 1));
      expect(records.map(({ name }) => name)).toEqual(namesOfBatches(records.length));
      await firstValueFrom(store.calls.driver.claim$('c'));
      expect(await read(store)).toEqual(records);
    }
  });

  it('S6: a power cut leaves a beginning of what was written, with whole batches', async () => {
    const path = newPath();
    await killedAfter(opening, [path], 12);
    const [file, log] = [readFileSync(path), readFileSync(`${path}-wal`)];
    const found: number[] = [];
    for (const part of [0, 0.1, 0.33, 0.5, 0.77, 0.9, 0.999, 1]) {
      const copy = newPath();
      const kept = log.subarray(0, Math.floor(log.length * part));
      writeFileSync(copy, file);
      // Blocks whose data has not reached the disk may contain anything.
      writeFileSync(`${copy}-wal`, Buffer.concat([kept, Buffer.alloc(8_192, 7)]));
      const records = await read(open(copy));
      expect(records.map(({ name }) => name)).toEqual(namesOfBatches(records.length));
      expect(records.length % 3).toBe(0);
      found.push(records.length);
    }
    expect(found).toEqual([...found].sort((a, b) => a - b));
    expect(found.at(-1)).toBeGreaterThanOrEqual(36);
    expect(found[0]).toBeLessThan(36);
  });

  it('G2: have lost nothing of a conversation to whose branches they append', async () => {
    const path = newPath();
    await killWhileBranching(
      () => open(path).memory('s'),
      `${opening}
      const memory = store.memory('s');`,
      [path],
      [90, 140],
    );
  });
});

it('S7: a process that was suspended for longer than its lease writes nothing when it continues, and gets the reason', async () => {
  const path = newPath();
  const script = `
    ${opening}
    import { lastValueFrom } from 'rxjs';
    const say = (text) => process.stdout.write(text + '\\n');
    const append = ({ append$ }, name) =>
      lastValueFrom(append$([{ kind: 'step', name, seq: 0, text: '1' }]), { defaultValue: 0 });
    calls.claim$('c').subscribe({
      next: (claim) => {
        process.on('SIGCONT', () => append(claim, 'late').catch(({ code }) => say(code)));
        append(claim, 'first').then(() => say('written'));
      },
      error: ({ code }) => {
        say('lost: ' + code);
        setTimeout(() => process.exit(), 1_000);
      },
    });`;
  const { child, said, ended } = startProcess(script, [path]);
  await said('written');
  child.kill('SIGSTOP');
  const store = open(path);
  const claimed = new ReplaySubject<Claim>(1);
  // While it shows to be alive, it has the call.
  const held = store.calls.driver.claim$('c').pipe(retry()).subscribe(claimed);
  const { append$ } = await firstValueFrom(claimed);
  await lastValueFrom(append$([{ kind: 'step', name: 'mine', seq: 0, text: '1' }]));
  child.kill('SIGCONT');
  expect((await ended).toSorted()).toEqual(['conflict', 'lost: conflict', 'written']);
  expect((await read(store)).map(({ name }) => name)).toEqual(['first', 'mine']);
  held.unsubscribe();
});

describe('several processes on one file', () => {
  it('S6: all write, and each sees what the others have written', async () => {
    const path = newPath();
    const script = `
      ${opening}
      import { concat, ignoreElements, lastValueFrom, mergeMap, range, repeat, switchMap, take, of } from 'rxjs';
      const record = (at) => ({ kind: 'step', name: String(at), seq: 0, text: 'x'.repeat(100) });
      const write$ = (callId) => calls.claim$(callId).pipe(
        switchMap(({ append$ }) => concat(...Array.from({ length: 50 }, (_, at) => append$([record(at)]).pipe(ignoreElements())), of(callId))),
        take(1),
      );
      range(0, 4).pipe(mergeMap((at) => write$(process.argv[2] + at))).subscribe({
        complete: () => store.close$().subscribe({ complete: () => process.stdout.write('done\\n') }),
        error: (error) => process.stdout.write(error.message + '\\n'),
      });`;
    const names = ['a', 'b', 'c'];
    const said = await Promise.all(names.map((name) => startProcess(script, [path, name]).ended));
    expect(said).toEqual([['done'], ['done'], ['done']]);
    const store = open(path);
    const calls = (await lastValueFrom(store.calls.driver.list$().pipe(toArray()))).flat();
    expect(calls).toHaveLength(12);
    for (const { callId } of calls) {
      const records = await read(store, callId);
      expect(records.map(({ name }) => Number(name))).toEqual(records.map((_, at) => at));
      expect(records).toHaveLength(50);
    }
  });
});

describe('the thread of a store', () => {
  it('S6: keeps no process alive that has nothing to do, and prints nothing', async () => {
    const script = `${opening}
      calls.list$().subscribe({ complete: () => process.stdout.write('listed\\n') });`;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script, newPath()], {
      cwd: join(import.meta.dirname, '../..'),
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect([child.status, child.stdout, child.stderr]).toEqual([0, 'listed\n', '']);
  });

  it('S6: that ends is a store error for what it had to do, and the next use starts another one', async () => {
    const script = `
      import { ignoreElements, lastValueFrom, ReplaySubject, firstValueFrom } from 'rxjs';
      const threads = [];
      process.on('worker', (thread) => threads.push(thread));
      ${opening}
      const claims = new ReplaySubject(1);
      calls.claim$('c').subscribe(claims);
      const { append$ } = await firstValueFrom(claims);
      const append = () => lastValueFrom(append$([{ kind: 'step', name: 'a', seq: 0, text: '1' }]), { defaultValue: 0 });
      await append();
      const writing = append();
      setImmediate(() => threads[0].terminate());
      const { code, retryable, message } = await writing.catch((error) => error);
      await append();
      const found = await lastValueFrom(calls.read$('c'));
      await lastValueFrom(store.close$(), { defaultValue: 0 });
      process.stdout.write(JSON.stringify({ code, retryable, message, threads: threads.length, found: found.length }) + '\\n');
      process.exit();`;
    const path = newPath();
    const [line = '{}'] = await startProcess(script, [path]).ended;
    const { found, ...rest } = JSON.parse(line) as { readonly found: number };
    expect(rest).toEqual({
      code: 'store',
      retryable: true,
      message: `The database ${path} failed: its thread has ended (it was stopped). Whether this operation was done is not known. The next use starts the thread again.`,
      threads: 2,
    });
    expect([2, 3]).toContain(found);
  });

  it('S6: a process ends though its only operation could not be sent', async () => {
    const script = `
      import { openSqlite } from './dist/sqlite/open-sqlite.js';
      openSqlite(process.argv[1]).calls.driver.list$({ sessionId: 's', debug: () => 1 }).subscribe({
        error: ({ code }) => process.stdout.write(code + '\\n'),
      });`;
    expect(await startProcess(script, [newPath()]).ended).toEqual(['config']);
  });

  it('C7: names the missing package, if the runtime has no SQLite', async () => {
    const folder = await mkdtemp(join(root, 'without-'));
    const own = join(import.meta.dirname, '../..');
    cpSync(join(own, 'dist/bundle'), join(folder, 'dist/bundle'), { recursive: true });
    cpSync(join(own, 'package.json'), join(folder, 'package.json'));
    mkdirSync(join(folder, 'node_modules/@millrace'), { recursive: true });
    symlinkSync(join(own, '../millrace'), join(folder, 'node_modules/millrace'));
    symlinkSync(join(own, '../../node_modules/rxjs'), join(folder, 'node_modules/rxjs'));
    const script = `
      import { openSqlite } from '${join(folder, 'dist/bundle/sqlite.js')}';
      try {
        openSqlite(process.argv[1]).calls.driver.list$().subscribe({
          complete: () => process.stdout.write('listed\\n'),
        });
      } catch ({ code, message }) {
        process.stdout.write(code + ': ' + message + '\\n');
      }`;
    const [line] = await startProcess(script, [newPath()]).ended;
    const hasSqlite = process.getBuiltinModule('node:sqlite' as 'fs') !== undefined;
    expect(line).toBe(
      hasSqlite
        ? 'listed'
        : 'config: openSqlite() needs Node 22.13 or later, which has SQLite, or a driver: npm install libsql',
    );
  });
});

/** A file system of two megabytes in a namespace of its own, where the system allows that. */
const small = (folder: string, command: readonly string[]): readonly string[] => [
  '-rm',
  'sh',
  '-c',
  `mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"`,
  folder,
  ...command,
];
const canMount = spawnSync('unshare', small(tmpdir(), ['true'])).status === 0;

(canMount ? describe : describe.skip)('a full disk', () => {
  it('X1: is a store error with the reason; confirmed records stay, and it continues when there is room', async () => {
    const folder = await mkdtemp(join(root, 'full-'));
    const script = `
      import { rmSync, writeFileSync } from 'node:fs';
      import { firstValueFrom, lastValueFrom, ReplaySubject, toArray } from 'rxjs';
      writeFileSync(process.argv[1] + '.ballast', 'x'.repeat(1_000_000));
      ${opening}
      const claims = new ReplaySubject(1);
      calls.claim$('c').subscribe(claims);
      const { append$ } = await firstValueFrom(claims);
      const append = (at) => lastValueFrom(append$([{ kind: 'step', name: String(at), seq: 0, text: 'x'.repeat(20_000) }]), { defaultValue: 0 });
      const told = [];
      const fill = async (most) => {
        for (let at = 0; at < most; at += 1) {
          const name = told.length;
          const error = await append(name).then(() => undefined, (it) => it);
          if (error) return error;
          told.push(name);
        }
      };
      const { code, message, retryable } = await fill(1_000);
      const before = told.length;
      const listed = (await lastValueFrom(calls.list$())).length;
      rmSync(process.argv[1] + '.ballast');
      const after = await fill(5);
      const found = (await lastValueFrom(calls.read$('c').pipe(toArray()))).flat().map(({ name }) => Number(name));
      const isWhole = found.join() === told.join();
      process.stdout.write(JSON.stringify({ code, message, retryable, listed, hasRoom: after === undefined, isWhole, some: before > 5 }) + '\\n');
      process.exit();`;
    const path = join(folder, 'calls.db');
    const command = [process.execPath, '--input-type=module', '-e', script, path];
    const child = spawnSync('unshare', small(folder, command), {
      cwd: join(import.meta.dirname, '../..'),
      encoding: 'utf8',
    });
    expect(child.stderr).toBe('');
    expect(JSON.parse(child.stdout)).toEqual({
      code: 'store',
      message: `The database ${path} failed: the disk is full. Free some space, then retry.`,
      retryable: true,
      listed: 1,
      hasRoom: true,
      isWhole: true,
      some: true,
    });
  });
});
