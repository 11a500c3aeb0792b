import type { Observable, SchedulerLike } from 'rxjs';
import type { Demand } from './demand.js';
import { misuse } from './errors.js';
import type { InputMessage } from './input.js';
import { isRecord } from './json.js';
import type { RequestOptions } from './model.js';
import {
  checkOptions,
  defined,
  having,
  isDelay,
  isFlag,
  isFunction,
  isModel,
  isObject,
  isText,
  listOf,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from './options.js';
import type { Use } from './layer.js';
import type { Limits } from './limits.js';
import type { PreparedOptions } from './preparation.js';
import type { JsonSchema } from './schema/json-schema.js';
import type { InputSchema } from './schema.js';
import { type ContextEntry, isContextEntry } from './tools/context-key.js';
import type { Approver, ToolContext, ToolEntry } from './tools/types.js';

/** What one call may say otherwise than its agent. */
export interface CallOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends PreparedOptions {
  /**
   * What was said before, for a call without a session: shown before the input, left out where there is no room, never stored. Messages of other agents become
   * messages of users with their names. What `prepare` guards is the input, not this.
   */
  readonly history?: readonly InputMessage[];
  /** Tools of this call, beside those of its session or agent, whatever selects among these. A name that is there already is an error. */
  readonly addTools?: readonly ToolEntry[];
  /**
   * What the answer must be: `reply.output` is of it. A model that answers otherwise is corrected twice at most, then the
   * call errors with `invalidResponse`.
   */
  readonly output?: Output;
  /** What a call does that finds its session busy. Default: `reject`. */
  readonly onBusy?: OnBusy;
  /** Calls that may wait in a session before one more errors with `queueFull`. Default: 16. */
  readonly maxQueue?: number;
  /** How often requests may be sent again, those of sub-agents included. Default: 10. */
  readonly retryBudget?: number;
  /**
   * What a resumed call does about a tool that had begun when it was broken off, and of which nobody knows how it ended: it ends with reason `suspended`,
   * and whoever finds out brings the result (`ask`, the default; without a session, where nobody could bring it, as `report`), it tells the model that nothing is known (`report`), or runs it again
   * (`rerun`). Tools that are `idempotent` are run again in any case, with the same idempotency key.
   */
  readonly onUncertain?: OnUncertain;
  /** Decides on every run of a tool, those of sub-agents too, when the tool's own `approve` has said yes. Default: nobody is asked. */
  readonly approve?: Approver;
  /** What tools find under context keys. It goes before what the session, the agent and a call above give. */
  readonly context?: readonly ContextEntry[];
  /** Handed to tools, interceptors and instructions; never sent to a model. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Its first value interrupts the call politely; a string is the text of the reply. */
  readonly interruptOn?: Observable<unknown>;
  /** Stops the call at once: it errors with `aborted`. */
  readonly signal?: AbortSignal;
  /** Pauses the sources of the call while it is closed. Default: always open. */
  readonly demand?: Demand;
  /** Runs every wait of the call. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
  /** Names the call. Default: random. */
  readonly callId?: string;
  /** The context of the tool that makes this call: the call becomes a part of that tool's. */
  readonly parent?: ToolContext;
  /**
   * What this call says is what the call above it says: `text()` has it, and user interfaces show it as the answer's own. It needs a `parent`, and
   * counts where that speaks itself, or is the root. Default: false.
   */
  readonly speaks?: boolean;
  /** Layers of this call, beside those of its agent. A resumed call needs them again. */
  readonly use?: Use;
}

/**
 * What a call does that finds its session busy: it errors with `busy` (`reject`, as `exhaustMap` drops), waits for its turn
 * (`queue`, as `concatMap`), ends the running call and all that wait as `interrupted`, then begins (`switch`, as
 * `switchMap`), or hands its input to the running call and emits that call's events and reply (`steer`, as a
 * `mergeMap` into one conversation would; then only its `demand`, `signal`, `interruptOn` and `callMs` hold).
 */
export type OnBusy = 'reject' | 'queue' | 'switch' | 'steer';

/** What is done about a tool that was broken off: see `onUncertain`. */
export type OnUncertain = 'ask' | 'report' | 'rerun';

/** What an agent may set for all its calls. */
export type CallDefaults = Omit<
  CallOptions,
  | 'output'
  | 'history'
  | 'addTools'
  | 'context'
  | 'interruptOn'
  | 'signal'
  | 'demand'
  | 'callId'
  | 'parent'
  | 'speaks'
  | 'use'
>;

const isTimeouts: Rule = [
  (value) => {
    checkOptions("'timeouts'", value, {
      callMs: isDelay,
      iterationMs: isDelay,
      firstChunkMs: isDelay,
      chunkMs: isDelay,
      toolMs: isDelay,
      approvalMs: isDelay,
      tools: [
        (given) => isRecord(given) && Object.values(given).every(isDelay[0]),
        `an object of tool names, each with ${isDelay[1]}`,
      ],
    });
    return true;
  },
  'an object of milliseconds',
];

export const isSchema: Rule = [
  (value) => (typeof value === 'object' && value !== null) || typeof value === 'function',
  'a JSON Schema, or a schema such as z.object({}) makes',
];

export const isContext: Rule = [
  (value) => Array.isArray(value) && value.every(isContextEntry),
  'a list of values under their keys, such as [db.of(pool)]',
];

const isTemperatureRamp: Rule = [
  (value) => {
    checkOptions("'temperatureRamp'", value, { step: numberFrom(0), max: numberFrom(0) });
    return true;
  },
  'an object of numbers',
];

const preparedRules: Readonly<Record<keyof PreparedOptions, Rule>> = {
  model: isModel,
  tools: listOf('tools'),
  temperature: numberFrom(0),
  maxTokens: wholeNumber(1),
  toolChoice: [
    (value) => isRecord(value) || ['auto', 'none', 'required'].some((word) => word === value),
    "'auto', 'none', 'required' or { name: 'the name of a tool' }",
  ],
  stopSequences: listOf('texts'),
  maxIterations: wholeNumber(1),
  onLimit: oneOf('answer', 'error', 'partial'),
  timeouts: isTimeouts,
  parallel: [
    (value) => typeof value === 'boolean' || (Number.isInteger(value) && Number(value) >= 1),
    'true, false or a whole number of at least 1',
  ],
  maxObservation: wholeNumber(1),
  maxToolCalls: wholeNumber(0),
  maxToolErrors: wholeNumber(0),
  toolBackoffMs: isDelay,
  maxParseRetries: wholeNumber(0),
  parseBackoffMs: isDelay,
  temperatureRamp: isTemperatureRamp,
};

const defaultRules: Readonly<Record<keyof CallDefaults, Rule>> = {
  ...preparedRules,
  onBusy: oneOf('reject', 'queue', 'switch', 'steer'),
  maxQueue: wholeNumber(0),
  retryBudget: wholeNumber(0),
  onUncertain: oneOf('ask', 'report', 'rerun'),
  approve: isFunction,
  metadata: isObject,
  scheduler: having('schedule', 'an RxJS scheduler'),
};

const callRules: Readonly<Record<keyof CallOptions, Rule>> = {
  ...defaultRules,
  output: isSchema,
  history: listOf('messages'),
  addTools: listOf('tools'),
  context: isContext,
  use: listOf('layers'),
  interruptOn: having('subscribe', 'an Observable'),
  signal: having('addEventListener', 'an AbortSignal'),
  demand: [
    (value) => isRecord(value) && 'open$' in value,
    'a Demand, such as createDemand() makes',
  ],
  callId: isText,
  parent: [isRecord, 'the context that a tool was run with'],
  speaks: isFlag,
};

/** An option that has become a layer names its new place. */
const check: typeof checkOptions = (owner, options, rules) => {
  if (isRecord(options) && options['toolSelection'] !== undefined) {
    throw misuse(`${owner}: 'toolSelection' is a layer now. Give selectTools({ … }) to 'use'.`);
  }
  checkOptions(owner, options, rules);
};

/** Refuses options that a call cannot be prepared with. */
export const checkPrepared = (owner: string, options: unknown): void =>
  check(owner, options, preparedRules);

/** Tells apart what a call may be prepared otherwise in, and what stays as it is. */
export const splitOptions = (
  options: CallOptions,
): { readonly prepared: PreparedOptions; readonly fixed: CallOptions } => {
  const entries = Object.entries(defined(options));
  const isPrepared = ([name]: readonly [string, unknown]) => Object.hasOwn(preparedRules, name);
  return {
    prepared: Object.fromEntries(entries.filter(isPrepared)),
    fixed: Object.fromEntries(entries.filter((entry) => !isPrepared(entry))),
  };
};

/** Refuses options that a call does not have, or that cannot be what they are. */
export const checkCallOptions = (owner: string, options: CallOptions): void => {
  check(owner, options, callRules);
  if (options.speaks === true && options.parent === undefined) {
    throw misuse(`${owner}: 'speaks' needs a 'parent', for which it speaks.`);
  }
};

/** Refuses defaults that an agent cannot have. */
export const checkDefaults = (owner: string, options: unknown): void =>
  check(owner, options, defaultRules);

/** Lays options over defaults; an option that is `undefined` is as good as absent. */
export const withDefaults = (defaults: CallDefaults, options: CallOptions): CallOptions => ({
  ...defaults,
  ...defined(options),
  timeouts: { ...defined(defaults.timeouts), ...defined(options.timeouts) },
});

/** The limits of a call, where it says nothing else. */
export const limitsOf = ({
  maxIterations = 10,
  onLimit = 'answer',
  timeouts = {},
  parallel = true,
  maxObservation = 16_000,
  maxToolCalls = Infinity,
  maxToolErrors = 2,
  toolBackoffMs = 0,
  maxParseRetries = 2,
  parseBackoffMs = 800,
  temperatureRamp,
  onUncertain = 'ask',
}: CallOptions): Limits => ({
  maxIterations,
  onLimit,
  timeouts: { toolMs: 60_000, ...timeouts },
  parallel: typeof parallel === 'number' ? parallel : parallel ? 5 : 1,
  maxObservation,
  maxToolCalls,
  maxToolErrors,
  toolBackoffMs,
  maxParseRetries,
  parseBackoffMs,
  onUncertain,
  temperatureRamp: temperatureRamp && { step: 0.2, max: 1.5, ...defined(temperatureRamp) },
});

/** What every request of a call says beside its messages and tools. */
export const requestOf = (
  { temperature, maxTokens, toolChoice, stopSequences }: CallOptions,
  system: string | undefined,
  outputSchema: JsonSchema | undefined,
): RequestOptions =>
  Object.fromEntries(
    Object.entries({
      system,
      toolChoice,
      temperature,
      maxTokens,
      stopSequences,
      outputSchema,
    }).filter(([, value]) => value !== undefined),
  );
