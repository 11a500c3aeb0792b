import { describe, expect, it } from '@jest/globals';
import { lentToolContext } from 'millrace/testing';
import { defer, firstValueFrom, lastValueFrom, Subject, VirtualTimeScheduler } from 'rxjs';
import { filesInMemory } from '../files-in-memory.js';
import { ran, sandboxContract } from '../testing/sandbox-contract.js';
import { javaScript } from './java-script.js';

const programs = {
  hello: 'console.log("hello")',
  copy: `const { text } = await tools.read_file({ path: "in.txt" });
await tools.write_file({ path: "out/result.txt", content: text.toUpperCase() });`,
  fail: 'throw new Error("the reason")',
  endless: 'while (true) {}',
  started: 'console.log("started"); while (true) {}',
  memory: 'new Array(1e9).fill(0)',
  output: 'console.log("x".repeat(10_000_000))',
};

describe('X20: a sandbox of QuickJS', () => {
  const create = (timeoutMs: number) => javaScript(filesInMemory(), { timeoutMs });
  for (const { name, run } of sandboxContract(create, programs)) it(name, run);

  it('gives code any text as it is, and errors of files', async () => {
    const sandbox = javaScript(filesInMemory(), { timeoutMs: 60_000 });
    const { text } = await ran(
      sandbox,
      `await tools.write_file({ path: 'a', content: '{"b":1}' });
      const errors = [];
      for (const input of [{ path: '../x' }, { path: 'none' }, {}, { path: 5 }]) {
        try { await tools.read_file(input) } catch (error) { errors.push(error.message) }
      }
      return JSON.stringify([await tools.list_files(), await tools.read_file({ path: 'a' }), errors]);`,
    );
    expect(JSON.parse(text)).toEqual([
      ['a'],
      { text: '{"b":1}' },
      [
        expect.stringContaining('leaves the root'),
        "There is no file 'none'.",
        "'path' must be a string.",
        "'path' must be a string.",
      ],
    ]);
  });

  it('has nothing of the machine, and no way to its global object', async () => {
    const names = ['process', 'require', 'fetch', 'XMLHttpRequest', 'WebSocket', 'Worker', 'Deno'];
    const { text } = await ran(
      javaScript(filesInMemory(), { timeoutMs: 60_000 }),
      `const names = ${JSON.stringify(names)};
      const globals = [globalThis, tools.read_file.constructor('return globalThis')(), (0, eval)('this')];
      const found = globals.flatMap((it) => names.filter((name) => it[name] !== undefined));
      const loaded = await import('node:fs').then(() => 'loaded', () => 'refused');
      return JSON.stringify([found, loaded]);`,
    );
    expect(JSON.parse(text)).toEqual([[], 'refused']);
  });

  it('leaves its work on files when it is left, and when the time is over', async () => {
    const never$ = new Subject<never>();
    const begun$ = new Subject<void>();
    const stuck = {
      ...filesInMemory(),
      list$: () =>
        defer(() => {
          begun$.next();
          return never$;
        }),
    };
    const scheduler = new VirtualTimeScheduler();
    const sandbox = javaScript(stuck, { timeoutMs: 5_000 });
    const run$ = sandbox.run$('await tools.list_files()', lentToolContext({ scheduler }));
    const first = firstValueFrom(begun$);
    const run = run$.subscribe();
    await first;
    expect(never$.observed).toBe(true);
    run.unsubscribe();
    expect(never$.observed).toBe(false);
    const again = firstValueFrom(begun$);
    const last = lastValueFrom(run$);
    await again;
    scheduler.flush();
    expect(await last).toMatchObject({ text: expect.stringContaining('after 5000 ms') });
    expect(never$.observed).toBe(false);
  });
});
