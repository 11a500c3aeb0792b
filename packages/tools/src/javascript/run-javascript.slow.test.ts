import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { afterAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { ToolEmission } from 'millrace';
import { lentToolContext, toolContract } from 'millrace/testing';
import { lastValueFrom, Subject, take, toArray, VirtualTimeScheduler } from 'rxjs';
import { runTool } from '../run-tool.test-support.js';
import { runJavaScript, type RunJavaScriptOptions } from './run-javascript.js';

const run = async (code: string, options: RunJavaScriptOptions = {}) => {
  // A busy machine may be slow: most of these tests are not about time.
  const tool = runJavaScript({ timeoutMs: 60_000, ...options });
  const { text, output, progress } = await runTool(tool, { code });
  return { text, isError: output.isError, details: output.details, progress };
};

/** Evaluates each code in one sandbox, and returns what each gives or throws. */
const runEach = async (codes: readonly string[]): Promise<readonly string[]> => {
  const { text } = await run(
    `const results = [];
    for (const code of ${JSON.stringify(codes)}) {
      try { results.push(String(await (0, eval)(code))) } catch (error) { results.push(String(error)) }
    }
    return JSON.stringify(results)`,
    { maxLength: 100_000 },
  );
  return JSON.parse(text);
};

describe('run_javascript', () => {
  const samples = {
    valid: [{ code: '1 + 1' }],
    invalid: [{}, { code: '' }, { code: 5 }, { code: 'x'.repeat(100_001) }],
  };
  for (const { name, run: check } of toolContract(() => runJavaScript(), samples)) it(name, check);

  it.each([
    ['const a = [3, 1, 2]; a.toSorted()', '[ 1, 2, 3 ]'],
    ['Promise.resolve({ a: "😀 \\ud800" })', expect.stringMatching(/^\{ a: "😀 /u)],
    ['const x = await Promise.resolve(5); return x + 1', '6'],
    ['const x = await Promise.resolve(5); x + 1', '6'],
    ['await Promise.resolve([3])', '[ 3 ]'],
    ['await 1; Promise.resolve(2)', '2'],
    ['for (const x of [1, 2]) { await x; }', '2'],
    ['await 1; const x = 5;', '1'],
    ['await 1; if (true) { 5 }', '5'],
    ['if (true) { await 5 }', '5'],
    ['if (true) { return await 5 }', '5'],
    ['let n = 0; while (n < 3) { n += 1; await n }', '3'],
    ['do { await 2 } while (false)', '2'],
    ['const all = []; for await (const x of [1, Promise.resolve(2)]) all.push(x); all', '[ 1, 2 ]'],
    ['try { await 7 } catch {}', '7'],
    ['try { await Promise.reject(1) } catch { 8 }', '8'],
    ['try { null.x } catch (error) { await error.name } finally { 9 }', 'TypeError'],
    ['await 1; switch (1) { case 1: "one" }', 'one'],
    ['await 1; here: { 5; break here }', '5'],
    ['async function f() { await 1; return 4 } f()', '4'],
    ['const f = async () => 4; await 1; f()', '4'],
    ['Promise.resolve(Promise.resolve(4))', '4'],
    ['({ then(resolve) { resolve(5) } })', '5'],
    ['await 1; ({ then(resolve) { resolve({ then(next) { next(6) } }) } })', '6'],
    ['return { then(resolve) { resolve(7) } }', '7'],
    ['({ then: 5 })', '{ then: 5 }'],
    [
      '[Promise.resolve(1), { a: Promise.reject(2) }]',
      expect.stringMatching(/not awaited.*not awaited/u),
    ],
    ['Promise.resolve = Promise.prototype.then = null; await 1; 5', '5'],
    ['Reflect.apply = () => 0; await 1; 5', '5'],
    ['await 1; undefined', 'undefined'],
    ['const r = await (async () => { return 4 })();\nr', '4'],
    ['await (async () => 4)()', '4'],
    ['const [a] = await [4]; a', '4'],
    ['await `x`', 'x'],
    ['await -1', '-1'],
    ['await /x/', '/x/'],
    ['await (5)', '5'],
    ['const text = "await (5)"; text', 'await (5)'],
    ['var await = 4; await', '4'],
    ['{ a: 1, b: [2] }', '{ a: 1, b: [ 2 ] }'],
    ['{ a: await Promise.resolve(1) }', '{ a: 1 }'],
    ['{ let a = 1; a + 1 }', '2'],
    ['{ await 1; 2 }', '2'],
    ['if (true) { return { a: 1 } }', '{ a: 1 }'],
    ['```js\nconst a = 1;\na + 1\n```', '2'],
    ['```\nreturn await 3\n```\n', '3'],
    ['const f = () => 4; f', '[function f] (It was not called.)'],
    ['async () => 4', '[function ] (It was not called.)'],
  ])('%s', async (code, expected) => {
    expect(await run(code)).toMatchObject({ text: expected, isError: false });
  });

  it('streams what is logged, and returns it before the result', async () => {
    const code = 'console.log("a", [1], "b"); console.error({ c: 1 }); return 5';
    expect(await run(code)).toEqual({
      text: 'a [ 1 ] b\n{ c: 1 }\n\nResult: 5',
      isError: false,
      details: { logged: 'a [ 1 ] b\n{ c: 1 }', result: '5' },
      progress: ['a [ 1 ] b\n', '{ c: 1 }\n'],
    });
    expect((await run('console.log("only this")')).text).toBe('only this');
  });

  it.each([
    [
      'console.log(1);\nnull.x',
      "1\n\nError: TypeError: cannot read property 'x' of null\n    at <eval> (code.js:2:5)",
    ],
    [
      'null.x; "a: string"',
      "Error: TypeError: cannot read property 'x' of null\n    at <eval> (code.js:1:5)",
    ],
    ['const = 5', 'Error: SyntaxError: variable name expected\n    at code.js:1:7'],
    ['await Promise.reject("a string")', 'Error: a string'],
    // This is an error at run time: the code must not run a second time as the body of a function.
    ['console.log("once"); JSON.parse("{")', expect.stringMatching(/^once\n\nError: SyntaxError/u)],
    ['Promise.reject(new TypeError("bad"))', expect.stringMatching(/^Error: TypeError: bad/u)],
    ['await 1; Promise.reject(5)', 'Error: 5'],
    [
      'async function f() { throw new TypeError("bad") } f()',
      expect.stringMatching(/bad\n +at f/u),
    ],
    [
      'async function f() { await 1; null.x } await f()',
      expect.stringMatching(/TypeError.*\n +at f/u),
    ],
    [
      '({ then() { throw new RangeError("in then") } })',
      expect.stringMatching(/RangeError: in then/u),
    ],
    ['({ then(_, reject) { reject("no") } })', 'Error: no'],
    ['({ get then() { throw new Error("in get") } })', expect.stringMatching(/Error: in get/u)],
    [
      'await Promise.any([Promise.reject(new Error("a")), Promise.reject("b")])',
      expect.stringMatching(/caused by Error: a\ncaused by b$/u),
    ],
    [
      'throw new Error("outer", { cause: new TypeError("inner") })',
      expect.stringMatching(/outer[^]*caused by TypeError: inner$/u),
    ],
    [
      'const error = new Error("own"); error.cause = error; throw error',
      expect.stringMatching(/Error: own/u),
    ],
    ...[
      'const x: number = 4; x',
      'function f(a: string): string { return a } f("a")',
      'interface A { b: number }\nconst a: A = { b: 1 }; a.b',
      'const x = 4 as number; x',
      'type A = string; 4',
      'enum A { B }; A.B',
      'const f = <T>(x: T): T => x; f(4)',
      'const m = new Map<string, number>(); m.size',
      'const y = 1; const x = y!; x',
      'const f = async (x?: Map<string, number[]>) => x; await f()',
    ].map((code) => [code, expect.stringMatching(/SyntaxError[^]*\nRemove the types/u)] as const),
    [
      'const f = () => { await 4 }; f()',
      expect.stringMatching(/SyntaxError[^]*\nawait works at the top/u),
    ],
    [
      'for (const x of [1) x',
      expect.stringMatching(/^Error: SyntaxError: [^\n]*\n +at code.js:1:\d+$/u),
    ],
    ['new Promise(() => {})', expect.stringMatching(/^Error: The promise never settles/u)],
    ['await 1; ({ then() {} })', expect.stringMatching(/^Error: The promise never settles/u)],
    ['await new Promise(() => {})', expect.stringMatching(/^Error: The promise never settles/u)],
  ])('reports the error of %j', async (code, expected) => {
    expect(await run(code)).toMatchObject({ text: expected, isError: true });
  });

  it('keeps nothing between runs', async () => {
    await run('globalThis.kept = 1; Object.prototype.kept = 1');
    expect((await run('typeof kept')).text).toBe('undefined');
  });

  it.each([
    [{ memoryMb: 16 }, "'memoryMb' must be a whole number from 32 to 1,024"],
    [{ maxLength: 1 }, "'maxLength' must be a whole number of at least 100"],
    [{ time: 1 }, "no option 'time'"],
  ])('refuses the options %j', (options, message) => {
    expect(() => runJavaScript(options as never)).toThrow(message);
  });
});

describe('X20: the sandbox', () => {
  it('has nothing of the process', async () => {
    const escapes = [
      ['typeof process + typeof require + typeof module', 'undefinedundefinedundefined'],
      ['typeof fetch + typeof setTimeout + typeof WebAssembly', 'undefinedundefinedundefined'],
      ['Object.keys(globalThis).join()', 'console'],
      ['constructor.constructor("return process")()', "ReferenceError: 'process' is not defined"],
      ['console.log.constructor("return process")()', "ReferenceError: 'process' is not defined"],
      [
        '(async () => {}).constructor("return process")()',
        "ReferenceError: 'process' is not defined",
      ],
      ['(function* () {}).constructor("return this.process")().next().value', 'undefined'],
      [
        'new Error().stack.constructor.constructor("return typeof globalThis.process")()',
        'undefined',
      ],
      [
        'Error.prepareStackTrace = (_, it) => it; typeof new Error().stack?.[0]?.getThis',
        'undefined',
      ],
      [
        'try { null.x } catch (error) { error.constructor.constructor("return typeof process")() }',
        'undefined',
      ],
      ['const log = console.log; log.call(null); log.caller', 'TypeError: invalid property access'],
      ['import("node:fs")', expect.stringContaining('import()')],
    ] as const;
    expect(await runEach(escapes.map(([code]) => code))).toEqual(
      escapes.map(([, result]) => result),
    );
    for (const code of ['import fs from "node:fs"', 'await import("node:fs")']) {
      expect((await run(code)).text).toContain("could not load module 'node:fs'");
    }
    expect((await run('await 1;\n})(); typeof process; (async () => {')).text).toBe('undefined');
  });

  it('cannot change the process', async () => {
    const code = `
      Object.prototype.polluted = 1; Array.prototype.polluted = 1; String.prototype.polluted = 1;
      Object.defineProperty(Object.prototype, 'type', { get: () => 'result', set() {} });
      Array.prototype.map = Array.prototype.join = String.prototype.slice = () => 'replaced';
      console.log({ __proto__: { x: 1 } }, JSON.parse('{"__proto__":{"polluted":1}}'));
      return { constructor: { prototype: { polluted: 1 } }, toJSON() { throw 1 }, then: 5 };`;
    expect((await run(code)).isError).toBe(false);
    expect([{}, [], ''].some((it) => 'polluted' in Object(it))).toBe(false);
    expect('type' in {}).toBe(false);
  });

  it('ends the code that asks for too much with an error, which the code can catch', async () => {
    const results = await runEach([
      'new Array(1e9).fill(0)',
      '"x".padEnd(2 ** 30 - 1)',
      '"x".repeat(2 ** 31)',
      '2n ** (2n ** 32n)',
      'JSON.stringify(Array(20).fill("\\u0000".repeat(1e6)))',
      'new ArrayBuffer(1e9)',
      'const f = () => f() + 1; f()',
      'const g = () => [1].map(g); g()',
      'const p = new Proxy({}, { get: (_, name, it) => it[name] }); p.x',
      'JSON.parse("[".repeat(1e6))',
      'new RegExp("(".repeat(1e5))',
      'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)',
    ]);
    const isRefused = /memory|too (?:long|large|big)|overflow|Error/u;
    expect(results.filter((it) => !isRefused.test(it))).toEqual([]);
  });
});

describe('X20: the process survives', () => {
  /** Also counts the turns of the event loop, and measures the memory that the process takes in addition. */
  const survives = async (code: string, options: RunJavaScriptOptions = {}) => {
    const before = process.memoryUsage().rss;
    const state = { turns: 0, grown: 0, isOver: false };
    const turn = (): void => {
      state.turns += 1;
      state.grown = Math.max(state.grown, process.memoryUsage().rss - before);
      if (!state.isOver) setTimeout(turn, 1);
    };
    turn();
    const begun = performance.now();
    const ran = await run(code, options);
    state.isOver = true;
    return { ...ran, ...state, ms: performance.now() - begun };
  };

  it.each([
    [
      'an endless loop that catches all',
      'for (;;) try { for (;;); } catch {} finally { continue }',
    ],
    ['a hostile pattern', '/^(a+)+$/.test("a".repeat(50) + "b")'],
    [
      'large sorts, which the engine does not interrupt',
      'for (;;) new Array(2e5).fill(0).map((_, n) => -n).sort()',
    ],
    ['endless jobs', 'const next = () => Promise.resolve().then(next); next(); for (;;) await 1'],
    ['a promise that always becomes another', 'const it = { then(resolve) { resolve(it) } }; it'],
    [
      'a chain that never ends, which nobody awaits',
      'const next = async () => { for (;;) await 1 }; next(); 5',
    ],
    ['an output that never ends', 'for (;;) console.log("x".repeat(1000))'],
  ])('%s', async (_, code) => {
    const { text, isError, turns, ms, grown } = await survives(code, { timeoutMs: 300 });
    expect(text).toMatch(/The code was stopped after 300 ms\.$|out of memory/u);
    expect(isError).toBe(true);
    expect(text.length).toBeLessThan(10_200);
    expect(turns).toBeGreaterThan(10);
    expect(ms).toBeLessThan(20_000);
    expect(grown).toBeLessThan(300e6);
  });

  it.each([
    ['typed arrays', 'const all = []; for (;;) all.push(new Uint8Array(1e6).fill(1))'],
    ['objects', 'const all = []; for (;;) all.push({ all })'],
  ])('too many %s', async (_, code) => {
    const { text, isError, grown } = await survives(code);
    expect(text).toMatch(/^Error: InternalError: out of memory/u);
    expect(isError).toBe(true);
    expect(grown).toBeLessThan(300e6);
  });

  it('code that overflows the stack of the thread', async () => {
    expect(await survives('eval("[".repeat(1e5))')).toMatchObject({
      text: expect.stringContaining('nested too deeply'),
      isError: true,
    });
  });

  it('many long values in one line, which together exceed the memory of the thread', async () => {
    const code = `console.log(...Array.from({ length: 5_000 }, (_, i) => String.fromCharCode(97 + i % 26).repeat(9_990)))`;
    const { isError, details } = await run(code);
    expect(isError).toBe(false);
    expect(String(Object(details).logged)).toMatch(/^a{9990} b{9}…$/u);
  });

  it('long strings, and many', async () => {
    const short = { maxLength: 500 };
    expect((await run('"x".repeat(2e6)', short)).text).toBe(`${'x'.repeat(500)}…`);
    expect((await run('console.log("x".repeat(2e6))', short)).text).toMatch(/^x{500}…/u);
    const { text, progress } = await run('for (let i = 0; i < 5e3; i += 1) console.log(i)', short);
    expect(text.length).toBeLessThan(520);
    expect(progress.length).toBeLessThan(500);
  });

  it('with the memory that the sandbox was given', async () => {
    const fill =
      'const all = []; for (;;) { all.push(new Uint8Array(1e6)); console.log(all.length) }';
    const counts = [32, 96].map(async (memoryMb) => {
      const { details } = await run(fill, { memoryMb });
      return Number(String(Object(details).logged).split('\n').at(-1));
    });
    const [small = 0, large = 0] = await Promise.all(counts);
    expect(small).toBeGreaterThan(5);
    expect(small).toBeLessThan(34);
    expect(large).toBeGreaterThan(60);
    expect(large).toBeLessThan(101);
  });
});

describe('I5: the thread of run_javascript ends', () => {
  const terminate = jest.spyOn(Worker.prototype, 'terminate');
  beforeEach(() => void terminate.mockClear());
  afterAll(() => terminate.mockRestore());

  const start = (scheduler: VirtualTimeScheduler, code: string) => {
    const emissions$ = new Subject<ToolEmission>();
    const first = lastValueFrom(emissions$.pipe(take(1)));
    const subscription = runJavaScript()
      .run$({ code }, lentToolContext({ scheduler }))
      .subscribe(emissions$);
    return { emissions$, first, subscription };
  };
  const busy = 'console.log("started"); for (;;);';
  const exited = () => Promise.all(terminate.mock.results.map(({ value }) => value));

  it('when the caller unsubscribes, in the same tick', async () => {
    const { first, subscription } = start(new VirtualTimeScheduler(), busy);
    await first;
    expect(terminate).not.toHaveBeenCalled();
    subscription.unsubscribe();
    expect(terminate).toHaveBeenCalledTimes(1);
    expect(await exited()).toEqual([1]);
  });

  it('when time is up, by the scheduler of the call', async () => {
    const scheduler = new VirtualTimeScheduler();
    const { emissions$, first } = start(scheduler, busy);
    const all = lastValueFrom(emissions$.pipe(toArray()));
    await first;
    scheduler.flush();
    expect(scheduler.frame).toBe(5_000);
    expect((await all).at(-1)).toMatchObject({ type: 'output', output: { isError: true } });
    expect(await exited()).toEqual([1]);
  });

  it('when the code has ended', async () => {
    await lastValueFrom(start(new VirtualTimeScheduler(), '1').emissions$);
    expect(terminate).toHaveBeenCalledTimes(1);
    await exited();
  });
});

it('names the command that installs the sandbox', async () => {
  const on = jest.spyOn(Worker.prototype, 'on').mockImplementation(function (
    this: Worker,
    name,
    listener,
  ) {
    if (name === 'message') queueMicrotask(() => listener({ type: 'notInstalled' }));
    return this;
  });
  const error: unknown = await run('1').catch((thrown: unknown) => thrown);
  on.mockRestore();
  expect(error).toMatchObject({ code: 'config' });
  const { peerDependencies } = JSON.parse(readFileSync('packages/tools/package.json', 'utf8'));
  for (const name of ['quickjs-emscripten-core', '@jitl/quickjs-wasmfile-release-sync']) {
    expect(String(error)).toContain(`${name}@${peerDependencies[name].replace('^', '')}`);
  }
});
