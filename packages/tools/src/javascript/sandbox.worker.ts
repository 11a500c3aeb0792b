// The program of a thread: runs the code in its `workerData` in QuickJS, and posts what it logs and its result. It
// imports nothing of core, which would take longer to load than the sandbox.
import { parentPort, workerData } from 'node:worker_threads';
import type {
  QuickJSContext,
  QuickJSDeferredPromise,
  QuickJSHandle,
  QuickJSSyncVariant,
} from 'quickjs-emscripten-core';
import { fixClock, installTools, type Surroundings } from './install-tools.js';
import { showValue } from './show-value.js';

/** A message of the thread: any number of `log` and `calls`, then one of the others. */
export type SandboxMessage =
  | { readonly type: 'log'; readonly text: string }
  /** The code waits for the results of these calls; rounds count from 0. */
  | { readonly type: 'calls'; readonly round: number; readonly calls: readonly SandboxCall[] }
  | { readonly type: 'result' | 'failure'; readonly text: string }
  | { readonly type: 'notInstalled' };

/** A call of a tool by the code. */
export interface SandboxCall {
  /** Counts from 1, in the order of the calls. */
  readonly id: number;
  readonly name: string;
  /** JSON of an object. */
  readonly input: string;
}

/** The results of a round of calls. */
export interface SandboxResults {
  readonly round: number;
  readonly results: readonly {
    readonly id: number;
    readonly text: string;
    readonly isError: boolean;
  }[];
}

/** The data of the thread. */
export interface SandboxTask {
  /** The tools that the code may call. Default: none. */
  readonly host?: Surroundings & { readonly maxCalls: number };
  readonly code: string;
  readonly memoryMb: number;
  /** The maximum number of characters of everything that it posts. */
  readonly maxLength: number;
}

/** The compiler has no types of this. */
declare const WebAssembly: {
  readonly Memory: new (limits: { readonly initial: number; readonly maximum: number }) => object;
};

const pagesPerMb = 16;
/** Larger ones overflow the stack of the thread. */
const stackBytes = 256 * 1024;

const post = (message: SandboxMessage): void => parentPort?.postMessage(message);

const load = async () => {
  try {
    const core = await import('quickjs-emscripten-core');
    // Its types are those of a CommonJS module, which it is not.
    const { default: variant }: { default: unknown } =
      await import('@jitl/quickjs-wasmfile-release-sync');
    return isVariant(variant) ? ([core, variant] as const) : undefined;
  } catch {
    return undefined;
  }
};

const isVariant = (value: unknown): value is QuickJSSyncVariant =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'sync';

const run = async ({ code, memoryMb, maxLength, host }: SandboxTask): Promise<void> => {
  const loaded = await load();
  if (loaded === undefined) {
    post({ type: 'notInstalled' });
    return;
  }
  const [{ newQuickJSWASMModuleFromVariant, newVariant }, variant] = loaded;
  // A limit of QuickJS itself would not count typed arrays.
  const wasmMemory = new WebAssembly.Memory({ initial: 256, maximum: memoryMb * pagesPerMb });
  const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory }));
  const runtime = engine.newRuntime();
  runtime.setMaxStackSize(stackBytes);
  const context = runtime.newContext();
  const show = showIn(context, maxLength);
  addConsole(context, show, maxLength);
  const calls = host && addTools(context, host);
  post(await resultOf(context, code, show, calls));
};

// ---------------------------------------------------------------- values of the sandbox

type Show = (value: QuickJSHandle) => string;

/** Shows a value of the sandbox. The function is created before the code runs, which cannot replace it. */
const showIn = (context: QuickJSContext, maxLength: number): Show => {
  const inside = context.unwrapResult(context.evalCode(`(${showValue.toString()})`, 'show.js'));
  return (value) => {
    const shown = context.callFunction(
      inside,
      context.undefined,
      value,
      context.newNumber(maxLength),
    );
    // The function catches what the value throws.
    return shown.error === undefined
      ? stringIn(context, shown.value, maxLength)
      : 'InternalError: out of memory';
  };
};

/** Copies a string out of the sandbox, unless it is longer than allowed. */
const stringIn = (context: QuickJSContext, value: QuickJSHandle, maxLength: number): string => {
  if (context.typeof(value) !== 'string') return '(This value cannot be shown.)';
  // The length of a primitive string: the code cannot change it.
  const length = context.getNumber(context.getProp(value, 'length'));
  return length > 2 * maxLength + 1_000
    ? `(A string of ${length} characters.)`
    : context.getString(value);
};

/**
 * Shows values until the text is longer than `maxLength`. All of them may be longer than the memory of the thread, and V8
 * ends the process for one string that does not fit.
 */
const joined = (values: readonly QuickJSHandle[], show: Show, maxLength: number): string => {
  let text = '';
  for (const [index, value] of values.entries()) {
    if (text.length > maxLength) break;
    text += index === 0 ? show(value) : ` ${show(value)}`;
  }
  return text;
};

const addConsole = (context: QuickJSContext, show: Show, maxLength: number): void => {
  const state = { left: maxLength };
  const log = context.newFunction('log', (...values) => {
    if (state.left <= 0) return;
    const line = `${joined(values, show, state.left)}\n`;
    const isLast = line.length > state.left;
    post({ type: 'log', text: isLast ? `${line.slice(0, state.left)}…\n` : line });
    state.left -= line.length;
  });
  const console = context.newObject();
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace', 'dir', 'table']) {
    context.setProp(console, name, log);
  }
  context.setProp(context.global, 'console', console);
};

// ---------------------------------------------------------------- tools

/** The calls of tools by the code. */
interface Calls {
  /** Takes the calls that the host does not know yet. */
  take(): readonly SandboxCall[];
  settle(results: SandboxResults['results']): void;
}

/** In characters of JSON. */
const maxInput = 1_000_000;

const addTools = (
  context: QuickJSContext,
  { maxCalls, ...surroundings }: NonNullable<SandboxTask['host']>,
): Calls => {
  const waiting = new Map<number, QuickJSDeferredPromise>();
  let fresh: SandboxCall[] = [];
  let count = 0;
  const answer = (text: string, isError: boolean): QuickJSHandle => {
    const object = context.newObject();
    context.setProp(object, 'text', context.newString(text));
    context.setProp(object, 'isError', isError ? context.true : context.false);
    return object;
  };
  const refused = (why: string): QuickJSHandle => {
    const promise = context.newPromise();
    promise.resolve(answer(why, true));
    return promise.handle;
  };
  const call = context.newFunction('call', (nameIn, inputIn) => {
    const name = stringIn(context, nameIn, 1_000);
    if (context.typeof(inputIn) !== 'string') return refused('Not run: the input is not JSON.');
    const length = context.getNumber(context.getProp(inputIn, 'length'));
    if (length > maxInput) return refused(`Not run: the input has ${length} characters.`);
    if (count >= maxCalls) {
      return refused(`Not run: code may call tools up to ${maxCalls} times.`);
    }
    count += 1;
    const promise = context.newPromise();
    waiting.set(count, promise);
    fresh.push({ id: count, name, input: context.getString(inputIn) });
    return promise.handle;
  });
  const { names, ...clock } = surroundings;
  const source = `(call) => {
    (${installTools.toString()})(call, ${JSON.stringify(names)});
    (${fixClock.toString()})(${JSON.stringify(clock)});
  }`;
  const install = context.unwrapResult(context.evalCode(source, 'tools.js'));
  context.unwrapResult(context.callFunction(install, context.undefined, call));
  return {
    take: () => {
      const taken = fresh;
      fresh = [];
      return taken;
    },
    settle: (results) => {
      for (const { id, text, isError } of results) {
        waiting.get(id)?.resolve(answer(text, isError));
        waiting.delete(id);
      }
    },
  };
};

const nextResults = (): Promise<SandboxResults> =>
  new Promise((resolve) => {
    parentPort?.once('message', (results: SandboxResults) => resolve(results));
  });

// ---------------------------------------------------------------- the run

const resultOf = async (
  context: QuickJSContext,
  code: string,
  show: Show,
  calls: Calls | undefined,
): Promise<SandboxMessage> => {
  const failure = (error: QuickJSHandle): SandboxMessage => ({
    type: 'failure',
    text: show(error),
  });
  const settled = settledIn(context);
  const { evaluated, isAsync, hint } = evaluate(context, code);
  if (evaluated.error !== undefined) {
    return { type: 'failure', text: `${show(evaluated.error)}${hint}` };
  }
  const last = settled(evaluated.value, isAsync);
  for (let round = 0; ; round += 1) {
    const jobs = context.runtime.executePendingJobs();
    if (jobs.error !== undefined) return failure(jobs.error);
    const asked = calls?.take() ?? [];
    if (asked.length === 0) break;
    post({ type: 'calls', round, calls: asked });
    calls?.settle((await nextResults()).results);
  }
  const state = context.getPromiseState(last);
  switch (state.type) {
    case 'fulfilled':
      return { type: 'result', text: `${show(state.value)}${uncalled(context, state.value)}` };
    case 'rejected':
      return failure(state.error);
    case 'pending':
      return {
        type: 'failure',
        text: 'The promise never settles: there are no timers and no network.',
      };
  }
};

const uncalled = (context: QuickJSContext, value: QuickJSHandle): string =>
  context.typeof(value) === 'function' ? ' (It was not called.)' : '';

/**
 * Evaluates a script, which may have `await` at the top. Code with `return` at the top is the body of an async function
 * instead, and code that starts with a brace is an object if it can be one.
 */
const evaluate = (context: QuickJSContext, written: string) => {
  const code = unfenced(written);
  const compiles = ({ text, isAsync }: Form): boolean => {
    const flags = compileOnly | (isAsync ? asyncScript : 0);
    return context.evalCode(text, 'code.js', flags).error === undefined;
  };
  const form = formsOf(code).find(compiles);
  const { text, isAsync } = form ?? { text: code, isAsync: false };
  const evaluated = context.evalCode(text, 'code.js', isAsync ? asyncScript : undefined);
  return { evaluated, isAsync, hint: form === undefined ? hintFor(code) : '' };
};

interface Form {
  readonly text: string;
  readonly isAsync: boolean;
}

const formsOf = (code: string): readonly Form[] => {
  const object = `(${code}\n)`;
  const texts = /^\s*\{[^]*\}\s*$/.test(code) ? [object, code] : [code];
  const scripts = texts.flatMap((text): readonly Form[] => {
    const [plain, awaiting] = [false, true].map((isAsync) => ({ text, isAsync }));
    // In a plain script, `await (x)` calls a function of that name.
    const both = /\bawait\b/.test(code) ? [awaiting, plain] : [plain, awaiting];
    return both.filter((form) => form !== undefined);
  });
  return [...scripts, { text: `(async () => {${code}\n})()`, isAsync: false }];
};

/** Models write code as Markdown. */
const unfenced = (code: string): string =>
  /^\s*(`{3,})[^\n`]*\n([^]*?)\n?[ \t]*\1\s*$/.exec(code)?.[2] ?? code;

const hintFor = (code: string): string =>
  [
    ...(typeScript.test(code)
      ? ['Remove the types: the code must be JavaScript, not TypeScript.']
      : []),
    ...(/\bawait\b/.test(code) ? ['await works at the top, and in functions that are async.'] : []),
  ]
    .map((line) => `\n${line}`)
    .join('');

/** Syntax that TypeScript adds, in code that is not JavaScript. */
const typeScript =
  /\b(?:interface|type|enum|namespace|declare|abstract|readonly|private|public|protected|satisfies)\s+[\w{]|[\w)\]}]\s*\??:\s*(?:string|number|boolean|bigint|symbol|object|any|unknown|void|never|[A-Z{([])|\bas\s+\w|\w<[^<>]+>\s*\(|<\w[^<>]*>\s*\(|\w!\s*[;.,)]/;

/** `JS_EVAL_FLAG_COMPILE_ONLY` and `JS_EVAL_FLAG_ASYNC` of quickjs.h: the latter returns a promise of `{ value }`. */
const [compileOnly, asyncScript] = [1 << 5, 1 << 7];

/**
 * Settles the value of code as `await` does: promises, and objects with a method `then`. Its functions are those before
 * the code runs, which cannot replace them.
 */
const settledIn = (context: QuickJSContext) => {
  const source = `((apply, from, then) => (value, isAsync) => {
    const result = from(value);
    return isAsync ? apply(then, result, [(it) => it.value]) : result;
  })(Reflect.apply, Promise.resolve.bind(Promise), Promise.prototype.then)`;
  const inside = context.unwrapResult(context.evalCode(source, 'settle.js'));
  return (value: QuickJSHandle, isAsync: boolean): QuickJSHandle =>
    context.unwrapResult(
      context.callFunction(
        inside,
        context.undefined,
        value,
        isAsync ? context.true : context.false,
      ),
    );
};

const isTask = (value: unknown): value is SandboxTask =>
  typeof value === 'object' && value !== null && 'code' in value && 'maxLength' in value;

const given: unknown = workerData;
if (isTask(given)) await run(given);
