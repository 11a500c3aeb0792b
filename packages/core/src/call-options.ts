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
import type { Approver, ToolContext } from './tools/types.js';

/** What one call may say otherwise than its agent. */
export interface CallOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends PreparedOptions {
  /** Earlier messages, for a call without a session: shown before the input, never stored. `prepare` does not guard them. */
  readonly history?: readonly InputMessage[];
  /** The schema of the answer, for `reply.output`. The model is corrected up to twice, then the call errors with `invalidResponse`. */
  readonly output?: Output;
  /** How often requests may be sent again, those of sub-agents included. Default: 10. */
  readonly retryBudget?: number;
  /**
   * What a resumed call does about a tool that was running when its process stopped: it ends as `suspended`, for a person to bring the
   * result (`ask`, the default; without a session, `report`), tells the model that the outcome is unknown (`report`), or runs it again
   * (`rerun`). Tools that are `idempotent` always run again, with the same key.
   */
  readonly onUncertain?: OnUncertain;
  /** Decides on every run of a tool, those of sub-agents too, when the tool's own `approve` has said yes. Default: nobody is asked. */
  readonly approve?: Approver;
  /** What tools find under context keys. It goes before what the session, the agent and a call above give. */
  readonly context?: readonly ContextEntry[];
  /** Handed to tools, interceptors and instructions; never sent to a model. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Its first value interrupts the call politely; a string, or the text of a `message`, is the text of the reply. */
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
  /** Whether this call speaks for the call above: `text()` includes it, and UIs show it as the answer. Needs a `parent`. Default: false. */
  readonly speaks?: boolean;
  /** Layers of this call, beside those of its agent. A resumed call needs them again. */
  readonly use?: Use;
}

/** What is done about a tool that was broken off: see `onUncertain`. */
export type OnUncertain = 'ask' | 'report' | 'rerun';

/** What an agent may set for all its calls. */
export type CallDefaults = Omit<
  CallOptions,
  | 'output'
  | 'history'
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

const ofSessions = 'Give it to sessions(agent, { … }), or to a call of a session.';

const places: Readonly<Record<string, string>> = {
  memory: 'Give it to sessions(agent, { … }).',
  onBusy: ofSessions,
  maxQueue: ofSessions,
  onFailure: ofSessions,
  journal: "Give journal(store) to 'use'.",
  addTools: "Give addTools(…) to 'use'.",
  interceptors: "Give them to 'use': [on(type, operator)].",
  toolSelection: "Give selectTools({ … }) to 'use'.",
};

/** Refuses an option that has moved, and names its new place. */
export const refuseMoved = (owner: string, options: unknown, known: object = {}): void => {
  const isMoved = (name: string): boolean =>
    isRecord(options) && options[name] !== undefined && !Object.hasOwn(known, name);
  const name = Object.keys(places).find(isMoved);
  if (name !== undefined) throw misuse(`${owner} has no option '${name}'. ${places[name] ?? ''}`);
};

/** Refuses options that a call cannot be prepared with. */
export const checkPrepared = (owner: string, options: unknown): void => {
  refuseMoved(owner, options);
  checkOptions(owner, options, preparedRules);
};

export const preparedOptions = (options: CallOptions): PreparedOptions =>
  Object.fromEntries(
    Object.entries(defined(options)).filter(([name]) => Object.hasOwn(preparedRules, name)),
  );

/** Refuses options that a call does not have, or that cannot be what they are. `more` are rules for options beside them. */
export const checkCallOptions = (
  owner: string,
  options: CallOptions,
  more: Readonly<Record<string, Rule>> = {},
): void => {
  refuseMoved(owner, options, more);
  checkOptions(owner, options, { ...callRules, ...more });
  if (options.speaks === true && options.parent === undefined) {
    throw misuse(`${owner}: 'speaks' needs a 'parent', for which it speaks.`);
  }
};

/** Refuses defaults that an agent cannot have. */
export const checkDefaults = (owner: string, options: unknown): void => {
  refuseMoved(owner, options);
  checkOptions(owner, options, defaultRules);
};

/** Lays options over defaults; an option that is `undefined` is as good as absent. */
export const withDefaults = (defaults: CallDefaults, options: CallOptions): CallOptions => ({
  ...defaults,
  ...defined(options),
  timeouts: { ...defined(defaults.timeouts), ...defined(options.timeouts) },
});

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

const plainOptions: readonly (keyof CallOptions)[] = [
  'history',
  'temperature',
  'maxTokens',
  'toolChoice',
  'stopSequences',
  'maxIterations',
  'onLimit',
  'timeouts',
  'retryBudget',
  'parallel',
  'maxObservation',
  'maxToolCalls',
  'maxToolErrors',
  'toolBackoffMs',
  'maxParseRetries',
  'parseBackoffMs',
  'temperatureRamp',
  'onUncertain',
  'metadata',
];

export const plainOptionsIn = (options: object): CallOptions =>
  Object.fromEntries(
    Object.entries(options).filter(([name]) => plainOptions.some((known) => known === name)),
  );
