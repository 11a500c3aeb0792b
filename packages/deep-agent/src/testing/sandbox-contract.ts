import assert from 'node:assert/strict';
import { lentToolContext } from 'millrace/testing';
import { lastValueFrom, type Observable, take, toArray } from 'rxjs';
import type { Sandbox, SandboxResult } from '../file-system.js';
import type { Check } from './file-system-contract.js';

/** Programs in the language of a sandbox. */
export interface SandboxPrograms {
  /** Prints `hello`, and succeeds. */
  readonly hello: string;
  /** Reads `in.txt`, and writes its text in upper case to `out/result.txt`. */
  readonly copy: string;
  /** Fails with an error that has `the reason`. */
  readonly fail: string;
  /** Never ends. */
  readonly endless: string;
  /** Prints `started`, then never ends. */
  readonly started: string;
  /** Asks for a gigabyte of memory and uses it. */
  readonly memory: string;
  /** Prints ten million characters. */
  readonly output: string;
}

/** Returns the checks of a sandbox with its default limits. `create` takes a time limit, and returns an empty one. */
export const sandboxContract = (
  create: (timeoutMs: number) => Sandbox | Promise<Sandbox>,
  programs: SandboxPrograms,
): readonly Check[] => {
  const check = (
    name: string,
    run: (sandbox: Sandbox) => Promise<void>,
    timeoutMs = 60_000,
  ): Check => ({ name, run: async () => run(await create(timeoutMs)) });
  return [
    check('runs code, and returns its output and exit code', async (sandbox) => {
      const { text, exitCode, files } = await ran(sandbox, programs.hello);
      assert.match(text, /hello/u);
      assert.deepEqual([exitCode, files], [0, []]);
    }),
    check('shares its files with code', async (sandbox) => {
      await lastValueFrom(sandbox.write$('in.txt', 'wheel', 'k'), { defaultValue: undefined });
      const { files, exitCode } = await ran(sandbox, programs.copy);
      assert.deepEqual([exitCode, files], [0, ['out/result.txt']]);
      assert.equal(await lastValueFrom(sandbox.read$('out/result.txt')), 'WHEEL');
    }),
    check('returns the error of code', async (sandbox) => {
      const { text, exitCode } = await ran(sandbox, programs.fail);
      assert.match(text, /the reason/u);
      assert.notEqual(exitCode, 0);
    }),
    check(
      'stops code that takes too long',
      async (sandbox) => {
        const { text, exitCode } = await ran(sandbox, programs.endless);
        assert.match(text, /stopped after 1500 ms/u);
        assert.notEqual(exitCode, 0);
      },
      1_500,
    ),
    check('limits memory and output, and works afterwards', async (sandbox) => {
      assert.notEqual((await ran(sandbox, programs.memory)).exitCode, 0);
      assert.ok((await ran(sandbox, programs.output)).text.length < 25_000);
      assert.equal((await ran(sandbox, programs.hello)).exitCode, 0);
    }),
    check('streams output, and is left without waiting', async (sandbox) => {
      const run$ = sandbox.run$(programs.started, lentToolContext());
      const [first] = await lastValueFrom(run$.pipe(take(1), toArray()));
      assert.match(typeof first === 'string' ? first : '', /started/u);
    }),
  ];
};

/** The result of code. */
export const ran = async (sandbox: Sandbox, code: string): Promise<SandboxResult> => {
  const emissions$: Observable<string | SandboxResult> = sandbox.run$(code, lentToolContext());
  const last = await lastValueFrom(emissions$);
  assert.ok(typeof last !== 'string', 'There was no result.');
  return last;
};
