import {
  addTools,
  createAgent,
  type Interceptor,
  type Layer,
  type Context,
  type Perform,
  type Reply,
  tool,
  type Tool,
  type ToolContext,
  toolCallsOf,
  type ToolMessage,
  toolOutput,
  type ToolOutput,
} from 'millrace';
import { type Call, hideTools } from 'millrace/call';
import { phase, type PhaseFactory } from 'millrace/phases';
import { jsonSchema } from 'millrace/schema';
import {
  checkOptions,
  type Complete,
  defined,
  fnv1a,
  isDelay,
  isRecord,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  connect,
  defer,
  filter,
  map,
  merge,
  type Observable,
  ReplaySubject,
  Subject,
  takeWhile,
} from 'rxjs';
import { memoryRule, outputOf, sandbox$ } from '../javascript/sandbox.js';
import type { SandboxMessage, SandboxResults, SandboxTask } from '../javascript/sandbox.worker.js';
import { codeModel, outcomeIn } from './code-model.js';
import { signaturesOf } from './signatures.js';

/** Options of `codeActing`. */
export interface CodeActingOptions {
  /** Names of tools that the model calls directly, in addition to those that read skills. Default: none. */
  readonly direct?: readonly string[] | undefined;
  /** Maximum number of calls of tools by one piece of code. Default: 100. */
  readonly maxCalls?: number | undefined;
  /** Maximum time of the code between two rounds of tool calls, in milliseconds; tools have their own. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
  /** The memory of the sandbox in MiB, 32 to 1,024. Default: 64. */
  readonly memoryMb?: number | undefined;
  /** Maximum number of characters that are logged, and of the result, 100 or more each. Default: 10,000. */
  readonly maxLength?: number | undefined;
  /** Maximum number of characters of a tool result that the code gets. Default: 1,000,000. */
  readonly maxResult?: number | undefined;
}

/**
 * Gives the model one tool, `run_javascript`, instead of the agent's tools: it writes code that calls them as async
 * functions, also in parallel, and only what the code logs or returns goes to the model.
 *
 * The code runs in the sandbox of `runJavaScript`. Its tool calls are those of a call below, of an agent `code`: they are
 * validated, intercepted, approved, limited, reported and recorded like the model's own. All calls that the code waits
 * for run together, and the code continues when all of them have results, so a resumed call runs the code again with the
 * recorded results. `Date` shows the start of the call, and `Math.random` is seeded. An error of the code is a result
 * with its line. Interrupts and unsubscribing end the sandbox immediately.
 *
 * Interceptors of `preActing`, `actingChunk` and `postActing`, and layers with a `step`, apply to the tool calls of the code
 * as well. Does not apply to sub-agents.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools: [weather, stations], use: [codeActing()] });
 * ```
 */
export const codeActing = (options: CodeActingOptions = {}): Layer => {
  checkOptions('codeActing()', options, rules);
  const settings = { ...defaults, ...defined(options) };
  return {
    name,
    priority: 92,
    single: true,
    call: (context) => (next) => (call) => {
      const direct = [...alwaysDirect, ...settings.direct];
      const usable = call.toolkit.current.tools.filter((it) => !direct.includes(it.name));
      if (call.status !== 'prepared' || usable.length === 0) return next(call);
      const names = usable.map((it) => it.name);
      const adding = addTools(runCode(context, call, usable, settings)).call?.(context);
      return (adding?.((added) => next(hideTools(added, ...names))) ?? next)(call);
    },
  };
};

const name = 'codeActing';
const toolName = 'run_javascript';

const defaults = {
  direct: [],
  maxCalls: 100,
  timeoutMs: 5_000,
  memoryMb: 64,
  maxLength: 10_000,
  maxResult: 1_000_000,
} satisfies Complete<CodeActingOptions>;

type Settings = Complete<CodeActingOptions>;

const rules: Readonly<Record<keyof CodeActingOptions, Rule>> = {
  direct: [
    (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
    'a list of names of tools',
  ],
  maxCalls: wholeNumber(1),
  timeoutMs: isDelay,
  memoryMb: memoryRule,
  maxLength: wholeNumber(100),
  maxResult: wholeNumber(100),
};

/** These change what the model sees, which code cannot. */
const alwaysDirect = ['manage_tools', 'read_skill', 'search_skills', 'read_result'];

/** In characters. */
const maxSignatures = 12_000;

const runCode = (context: Context, call: Call, usable: readonly Tool[], settings: Settings): Tool =>
  tool({
    name: toolName,
    // The journal records the tool calls of the code, so running the code again does not repeat them.
    idempotent: true,
    timeoutMs: 600_000,
    description: `${description}\n${signaturesOf(usable, maxSignatures)}`,
    input: jsonSchema({
      type: 'object',
      properties: {
        code: {
          type: 'string',
          minLength: 1,
          maxLength: 100_000,
          description: 'The code. It may use await and return.',
        },
      },
      required: ['code'],
      additionalProperties: false,
    }),
    run: ({ code }, parent) => codeRun$(context, call, usable, settings, code, parent),
  });

const description = `Runs JavaScript in a sandbox, and returns what it logs with console.log and the value that it returns. Call the functions below to act: they are async and take one object. Await several in parallel with Promise.all. A result that is JSON is parsed; others are strings. A failed call throws. Do as much as you can in one piece of code, and return only what you need for your answer. There is no network, no file system, no import and no timer, and nothing is kept between runs.`;

/** Runs code. Emits what it logs, then the output. */
const codeRun$ = (
  { layers }: Pick<Context, 'layers'>,
  call: Call,
  usable: readonly Tool[],
  settings: Settings,
  code: string,
  parent: ToolContext,
): Observable<string | ToolOutput> =>
  defer(() => {
    const { maxCalls, memoryMb, maxLength, timeoutMs, maxResult } = settings;
    const names = usable.map((it) => it.name);
    const { limits = {} } = call.options;
    const { maxToolCalls = Infinity, timeouts = {} } = limits;
    const left = Math.max(0, maxToolCalls - callsBefore(parent));
    const results$ = new Subject<SandboxResults>();
    const rounds = createRounds();
    const seed = fnv1a(`${parent.callId}/${parent.toolCallId}`);
    const host = { names, now: call.createdAt, seed, maxCalls };
    const task: SandboxTask = { code, memoryMb, maxLength, host };
    const agentOf = (message$: Observable<SandboxMessage>) =>
      createAgent({
        name: 'code',
        model: codeModel(message$, {
          // Budgets in money need a price for each model.
          name: call.model?.name ?? name,
          toolCallId: parent.toolCallId,
          timeoutMs,
          rounds: rounds.read,
          answer: (results) => results$.next(results),
        }),
        tools: call.toolkit.current.tools.filter((it) => names.includes(it.name)),
        limits: {
          ...limits,
          maxIterations: maxCalls + 2,
          onLimit: 'error',
          maxObservation: maxResult,
          ...(left < Infinity && { maxToolCalls: left }),
          timeouts: defined({ toolMs: timeouts.toolMs, tools: timeouts.tools }),
        },
        use: [...layers.flatMap(layerForTools), rounds.layer],
      });
    return sandbox$(task, results$).pipe(
      connect(
        (message$) =>
          merge(
            message$.pipe(
              filter((message) => message.type === 'log'),
              map(({ text }) => text),
            ),
            agentOf(message$).call$(code, { parent }).pipe(map(outputOfReply)),
          ).pipe(takeWhile((emission) => typeof emission === 'string', true)),
        { connector: () => new ReplaySubject(Infinity) },
      ),
    );
  });

/** Reads the results of a run before each of its requests. */
const createRounds = () => {
  let latest: readonly ToolMessage[] = [];
  const reading: PhaseFactory = () =>
    phase((run) => {
      latest = run.messages.filter((message) => message.role === 'tool');
      return run;
    });
  const layer: Layer = { name: 'rounds', turn: (phases) => [reading, ...phases] };
  return { layer, read: () => latest };
};

/** The number of tool calls of the call before this one, with those of code, which only results of this tool count. */
const callsBefore = ({ callId, messages }: ToolContext): number => {
  const calls = messages.flatMap((message) =>
    message.role === 'assistant' ? toolCallsOf(message) : [],
  );
  const ofCode = new Set(calls.filter((it) => it.name === toolName).map(({ id }) => id));
  return messages
    .flatMap((message) =>
      message.role === 'tool' && message.id.startsWith(`${callId}/`) ? message.content : [],
    )
    .reduce((sum, it) => sum + 1 + (ofCode.has(it.toolCallId) ? callsIn(it.details) : 0), 0);
};

const callsIn = (details: unknown): number =>
  isRecord(details) && typeof details['toolCalls'] === 'number' ? details['toolCalls'] : 0;

/** The output for the reply of the call whose model is the code. */
const outputOfReply = (reply: Reply): ToolOutput => {
  const { reason, text } = reply;
  const toolCalls = reply.toolCalls.length;
  const outcome = reason === 'answer' ? outcomeIn(text) : undefined;
  if (outcome !== undefined) {
    const output = outputOf(outcome);
    const details = isRecord(output.details) ? output.details : {};
    return { ...output, details: { ...details, toolCalls } };
  }
  if (reason === 'toolFinal') {
    return toolOutput({ content: text, finalAnswer: true, details: { toolCalls } });
  }
  const content = endings[reason] ?? 'The code was stopped before it was done.';
  return toolOutput({ content, isError: true, details: { toolCalls } });
};

const endings: Readonly<Partial<Record<Reply['reason'], string>>> = {
  interrupted: 'The code was interrupted before it was done.',
  suspended:
    'The code called a tool that waits for an external result, which code cannot wait for. Continue without it, or state what is missing.',
};

// ---------------------------------------------------------------- layers

/** The part of a layer of the agent that concerns tool calls. Inherited layers apply by themselves. */
const layerForTools = (layer: Layer): readonly Layer[] => {
  if (layer.inherit === true || layer.name === name) return [];
  if (isInterceptor(layer)) return isOfTools(layer) ? [layer] : [];
  const { step, priority = 100 } = layer;
  const on = (layer.on ?? []).filter(isOfTools);
  const wraps = step !== undefined;
  if (on.length === 0 && !wraps) return [];
  return [{ name: layer.name, priority, on, ...(wraps && { step: stepsOfTools(step) }) }];
};

const isInterceptor = (layer: Layer): layer is Interceptor & Layer => 'hook' in layer;

const typesOfTools: readonly string[] = ['preActing', 'actingChunk', 'postActing'];

const isOfTools = ({ hook }: Interceptor): boolean =>
  hook.kind === 'event' && typesOfTools.includes(hook.type);

const stepsOfTools =
  (create: NonNullable<Layer['step']>): NonNullable<Layer['step']> =>
  (context) => {
    const wrap = create(context);
    return (next) => {
      const through = wrap(next);
      const perform: Perform = (step) =>
        step.kind === 'intent' || step.kind === 'tool' ? through(step) : next(step);
      return perform;
    };
  };
