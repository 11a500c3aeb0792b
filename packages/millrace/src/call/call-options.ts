import type { SchedulerLike } from 'rxjs';
import type { Demand } from '../flow/demand.js';
import { misuse } from '../values/errors.js';
import { defined, isRecord } from '../values/json.js';
import type { Use } from '../seams/layer.js';
import type { LimitOptions, Timeouts } from '../flow/deadline.js';
import type { RequestOptions } from '../models/model.js';
import {
  checkOptions,
  type Complete,
  having,
  isDelay,
  isModel,
  isText,
  listOf,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../values/options.js';
import type { CallDefaults, PreparedOptions } from '../seams/preparation.js';
import { cell } from '../step.js';
import type { InputSchema, JsonSchema } from '../values/schema.js';
import { type ContextEntry, isContextEntry } from '../tools/context-key.js';
import type { ToolContext } from '../tools/types.js';

/** Options of one call. They override those of the agent. */
export interface CallOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends PreparedOptions {
  /** Values of context keys. They override those of layers, the agent and the parent. */
  readonly context?: readonly ContextEntry[] | undefined;
  /** Data for tools, interceptors and instructions. Never sent to a model. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Aborts the call immediately: it errors with `aborted`. */
  readonly signal?: AbortSignal | undefined;
  /** Pauses the sources of the call while it is closed. Default: always open. */
  readonly demand?: Demand | undefined;
  /** The scheduler for every wait. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
  /** The id of the call. Default: random. */
  readonly callId?: string | undefined;
  /** The context of the tool that makes this call, which becomes its parent. */
  readonly parent?: ToolContext | undefined;
  /** Layers of this call, in addition to those of its agent. Pass them again to resume it. */
  readonly use?: Use<Output> | undefined;
}

/** The options of the caller, without the defaults of the agent. */
export const givenOptions = cell('call', (): { own: Readonly<Record<string, unknown>> } => ({
  own: {},
}));

const optionsIn = (name: string, rules: Readonly<Record<string, Rule>>): Rule => [
  (value) => {
    checkOptions(`'${name}'`, value, rules);
    return true;
  },
  'an object',
];

const timeoutRules: Readonly<Record<keyof Timeouts, Rule>> = {
  callMs: isDelay,
  iterationMs: isDelay,
  firstChunkMs: isDelay,
  chunkMs: isDelay,
  busyMs: isDelay,
  toolMs: isDelay,
  tools: [
    (given) => isRecord(given) && Object.values(given).every(isDelay[0]),
    `an object of tool names, each with ${isDelay[1]}`,
  ],
};

export const isContext: Rule = [
  (value) => Array.isArray(value) && value.every(isContextEntry),
  'a list of values under their keys, such as [db.of(pool)]',
];

const requestRules: Readonly<Record<keyof Complete<PreparedOptions>['request'], Rule>> = {
  temperature: numberFrom(0),
  maxTokens: wholeNumber(1),
  toolChoice: [
    (value) => isRecord(value) || ['auto', 'none', 'required'].some((word) => word === value),
    "'auto', 'none', 'required' or { name: 'a tool' }",
  ],
  stopSequences: [
    (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
    'a list of strings',
  ],
};

const limitRules: Readonly<Record<keyof LimitOptions, Rule>> = {
  maxIterations: wholeNumber(1),
  onLimit: oneOf('answer', 'error', 'partial'),
  timeouts: optionsIn('timeouts', timeoutRules),
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
  temperatureRamp: optionsIn('temperatureRamp', { step: numberFrom(0), max: numberFrom(0) }),
  retryBudget: wholeNumber(0),
};

export const preparedRules: Readonly<Record<keyof PreparedOptions, Rule>> = {
  model: isModel,
  tools: listOf('tools'),
  request: optionsIn('request', requestRules),
  limits: optionsIn('limits', limitRules),
};

const callRules: Readonly<Record<keyof CallOptions, Rule>> = {
  ...preparedRules,
  metadata: [
    (value) => isRecord(value) && Object.values(value).every((it) => typeof it === 'string'),
    'an object of strings',
  ],
  scheduler: having('schedule', 'an RxJS scheduler'),
  context: isContext,
  use: listOf('layers'),
  signal: having('addEventListener', 'an AbortSignal'),
  demand: [(value) => isRecord(value) && 'open$' in value, 'a Demand, such as createDemand()'],
  callId: isText,
  parent: [isRecord, 'the context of a tool call'],
};

/** Where options belong that are expected here, under the names of the layers and functions that have them. */
const places: Readonly<Record<string, string>> = {
  memory: 'Pass it to sessions(agent, { … }).',
  onBusy: 'Pass it to sessions(agent, { … }).',
  journal: "Add journal(store) to 'use'.",
  history: "Add history(messages) to 'use'.",
  approval: "Add approval(approver) to 'use'.",
  output: "Add output(schema) to 'use'.",
  callMs: 'Write limits: { timeouts: { callMs: … } }.',
  maxSteps: 'Write limits: { maxIterations: … }.',
  maxTurns: 'Write limits: { maxIterations: … }.',
  onUncertain: 'Pass it to journal(store, { … }).',
};

/** As `checkOptions`, but names the place of an option that belongs elsewhere. */
export const checkPlaced = (
  owner: string,
  options: unknown,
  rules: Readonly<Record<string, Rule>>,
  required?: readonly string[],
): void => {
  const given = isRecord(options) ? Object.keys(options) : [];
  const name = given.find((it) => !Object.hasOwn(rules, it)) ?? '';
  const isIn = (group: object): boolean => Object.hasOwn(group, name);
  const group = isIn(requestRules) ? 'request' : isIn(limitRules) ? 'limits' : undefined;
  const place = isIn(places) ? places[name] : group && `Write ${group}: { ${name}: … }.`;
  if (place !== undefined) throw misuse(`${owner} has no option '${name}'. ${place}`);
  checkOptions(owner, options, rules, required);
};

export const checkPrepared = (owner: string, options: unknown): void =>
  checkPlaced(owner, options, preparedRules);

const picked = (options: object, known: object): object =>
  Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(known, name)));

export const preparedOptions = (options: CallOptions): PreparedOptions =>
  picked(defined(options), preparedRules);

/** Rejects unknown and invalid options of a call. `more` has rules for additional options. */
export const checkCallOptions = (
  owner: string,
  options: CallOptions,
  more: Readonly<Record<string, Rule>> = {},
): void => {
  checkPlaced(owner, options, { ...callRules, ...more });
};

/** Merges the request and limits of a call with those of its agent; `undefined` counts as not set. */
export const withDefaults = (
  { request, limits = {} }: CallDefaults,
  { request: ownRequest, limits: own = {} }: CallDefaults,
): Complete<CallDefaults> => ({
  request: { ...defined(request), ...defined(ownRequest) },
  limits: {
    ...defined(limits),
    ...defined(own),
    timeouts: { ...defined(limits.timeouts), ...defined(own.timeouts) },
  },
});

export const requestOf = (
  request: PreparedOptions['request'],
  prompt: { readonly system: string | undefined; readonly fixedSystem: number | undefined },
  outputSchema: JsonSchema | undefined,
): RequestOptions => defined({ ...prompt, ...request, outputSchema });

export const plainOptionsIn = (options: object): CallOptions =>
  picked(options, { request: 0, limits: 0, metadata: 0 });
