import {
  type CallInfo,
  type Layer,
  type Context,
  type Message,
  type Model,
  MillraceError,
  type RequestOptions,
} from 'millrace';
import { estimateTokens } from 'millrace/fitting';
import type { LoopCall } from 'millrace/call';
import type { OpenRun } from 'millrace/phases';
import { checkPrices, priceOf, type PriceTable } from 'millrace/traffic';
import {
  checkOptions,
  isFlag,
  isFunction,
  isObject,
  isRecord,
  messageOf,
  numberFrom,
  type Rule,
} from 'millrace/values';
import { catchError, defer, from, map, type Observable, of, take, defaultIfEmpty } from 'rxjs';
import { type Choice, choosingLayer, innermostPlace } from './choose-model.js';
import type { CircuitBreaker } from './circuit-breaker.js';
import { isModel, ready } from './model-parts.js';

declare module 'millrace' {
  interface Events {
    /** A layer chose a model in place of the agent's own. */
    readonly modelChosen: {
      /** The name of the layer. */
      readonly by: string;
      /** The name of the model. */
      readonly model: string;
      readonly why: string;
    };
  }
}

/** The models of a router by key, in the order of preference. */
export type RoutedModels = Readonly<Record<string, Model>>;

/** The next request, as a policy sees it. */
export interface RouteRequest {
  readonly call: CallInfo;
  /** The messages so far. */
  readonly messages: readonly Message[];
  /** The options of the request, with its tools. */
  readonly options: RequestOptions;
  /** The estimated tokens of the request. */
  readonly tokens: number;
  /** The models to choose from: all of them, without those whose circuit is open. */
  readonly models: RoutedModels;
}

/** The key of a model, with or without a reason; `undefined` for the agent's own model. */
export type Route = string | { readonly model: string; readonly why: string } | undefined;

/**
 * Chooses a model. An Observable emits one route, a Promise resolves to it; if an Observable completes empty, the agent's
 * own model is used. For a model whose circuit is open, the first one of `models` is used.
 */
export type RoutePolicy = (request: RouteRequest) => Route | Observable<Route> | PromiseLike<Route>;

/** The models of a router, and how it chooses. */
export interface RouteModelsOptions {
  readonly models: RoutedModels;
  // A policy is mostly synchronous.
  // eslint-disable-next-line rxjs-x/finnish
  readonly by: RoutePolicy;
  /**
   * Whether to choose before each request, not once per call. Vendors may reject the signed thinking of other vendors.
   * Default: false.
   */
  readonly eachTurn?: boolean | undefined;
  /** Leaves out the models whose circuit is open, unless all are. Default: none. */
  readonly breaker?: Pick<CircuitBreaker, 'stateOf'> | undefined;
}

/**
 * Chooses the model of each call by a policy: `byLength`, `byCost`, or a function of yours. The choice takes the place of
 * the agent's own `model`, which stays the one for requests that no policy covers. It emits `modelChosen`, and a journal
 * records it, so a resumed call keeps its model. If the policy fails, the agent's own model is used, with a `warning`.
 *
 * @example
 * ```ts
 * const router = routeModels({
 *   models: { small: openai('gpt-5-nano'), large: openai('gpt-5') },
 *   by: byLength({ small: 4_000, large: 400_000 }),
 * });
 * const agent = createAgent({ model: openai('gpt-5'), use: [router] });
 * ```
 */
export const routeModels = (options: RouteModelsOptions): Layer => {
  checkOptions('routeModels()', options, rules, ['models', 'by']);
  const { by, eachTurn = false, breaker } = options;
  const models = Object.fromEntries(
    Object.entries(options.models).map(([key, model]) => [key, ready(checked(key, model))]),
  );
  if (Object.keys(models).length === 0) throw misuse("routeModels() needs a model in 'models'.");
  const limits = limitsOf.get(by);
  if (limits !== undefined) checkNumbers('byLength()', limits, models);
  const layer = choosingLayer({
    name: 'routeModels',
    priority: innermostPlace,
    position: ({ iteration }) => (eachTurn ? `${iteration + 1}/route` : 'route'),
    choose$: (context, call, run) => {
      const available = withoutOpen(models, breaker, context);
      return route$(by, requestOf(context, call, run, available)).pipe(
        map((route) => choiceOf(route, models, available)),
        catchError((error: unknown) => {
          const why = messageOf(error);
          const message = `routeModels(): the policy failed, so the agent's own model is asked: ${why}`;
          context.hooks.report(run.iteration + 1, { type: 'warning', message });
          return of<Choice>({ why: 'the policy failed' });
        }),
      );
    },
    // A recorded key may no longer exist.
    modelOf: ({ key = '' }) => (Object.hasOwn(models, key) ? models[key] : undefined),
  });
  return { ...layer, single: true };
};

const route$ = (by: RoutePolicy, request: RouteRequest): Observable<Route> =>
  defer(() => {
    const route = by(request);
    return typeof route === 'object' && !('model' in route)
      ? from(route).pipe(take(1), defaultIfEmpty(undefined))
      : of(route);
  });

const choiceOf = (route: Route, models: RoutedModels, available: RoutedModels): Choice => {
  if (route === undefined) return { why: "the agent's own model" };
  const { model: key, why } = typeof route === 'string' ? { model: route, why: 'policy' } : route;
  if (!Object.hasOwn(models, key)) {
    throw misuse(`it chose '${key}', which is not one of ${Object.keys(models).join(', ')}`);
  }
  if (Object.hasOwn(available, key)) return { key, why };
  const [first = key] = Object.keys(available);
  return { key: first, why: `the circuit of '${key}' is open` };
};

const withoutOpen = (
  models: RoutedModels,
  breaker: RouteModelsOptions['breaker'],
  { scheduler }: Pick<Context, 'scheduler'>,
): RoutedModels => {
  if (breaker === undefined) return models;
  const working = Object.entries(models).filter(
    ([, model]) => breaker.stateOf(model, scheduler.now()) !== 'open',
  );
  return working.length === 0 ? models : Object.fromEntries(working);
};

const requestOf = (
  { info: call }: Context,
  { request, toolkit }: LoopCall,
  { messages }: OpenRun,
  models: RoutedModels,
): RouteRequest => {
  const tools = toolkit.current.declarations;
  const options: RequestOptions = tools.length === 0 ? request : { ...request, tools };
  const { system = '', outputSchema } = options;
  const declared = JSON.stringify([
    ...tools,
    ...(outputSchema === undefined ? [] : [outputSchema]),
  ]);
  const tokens = [system, declared, ...messages.map(textForModel)].reduce(
    (sum, text) => sum + estimateTokens(text),
    0,
  );
  return { call, messages, options, tokens, models };
};

/** The text of a message as far as it costs tokens: media cost about as much as 4,000 characters. */
const textForModel = ({ content }: Message): string =>
  JSON.stringify(content, (key, value: unknown) =>
    key === 'details' ? undefined : key === 'source' ? ' '.repeat(4_000) : value,
  );

/**
 * A policy by length: the first model, from the smallest limit up, whose limit of tokens the request keeps; else the one
 * with the largest. Limits are by the key of the model; `routeModels` throws a `config` error if it has no such key.
 */
export const byLength = (limits: Readonly<Record<string, number>>): RoutePolicy => {
  checkNumbers('byLength()', limits);
  const ascending = Object.entries(limits).sort(([, a], [, b]) => a - b);
  const policy: RoutePolicy = ({ tokens, models }) => {
    const usable = ascending.filter(([key]) => Object.hasOwn(models, key));
    const [model] = usable.find(([, limit]) => tokens <= limit) ?? usable.at(-1) ?? [];
    return model === undefined ? undefined : { model, why: `about ${tokens} tokens` };
  };
  limitsOf.set(policy, limits);
  return policy;
};

/** The prices and context windows of models. */
export interface ByCostOptions {
  /** Prices per million tokens by model name, or `*` for all others, as a budget takes them. */
  readonly prices: PriceTable;
  /** The context window by key of the model, in tokens. Default: unlimited. */
  readonly contextTokens?: Readonly<Record<string, number>> | undefined;
  /** The expected tokens of an answer. Default: 500. */
  readonly answerTokens?: number | undefined;
}

/**
 * A policy by cost: the cheapest model whose context the request and its answer fit into, and that supports tools if the
 * request has some. A model without a price is not chosen. If none fits, the agent's own model is used.
 */
export const byCost = (options: ByCostOptions): RoutePolicy => {
  checkOptions('byCost()', options, costRules, ['prices']);
  const { prices, contextTokens = {}, answerTokens = 500 } = options;
  checkNumbers("byCost(): 'contextTokens'", contextTokens);
  checkPrices('byCost()', prices);
  return ({ tokens, models, options: { tools } }) => {
    const [cheapest] = Object.entries(models)
      .filter(([key, { unsupported = [] }]) => {
        const window = Object.hasOwn(contextTokens, key) ? contextTokens[key] : undefined;
        const supportsTools = tools === undefined || !unsupported.includes('tools');
        return supportsTools && tokens + answerTokens <= (window ?? Infinity);
      })
      .flatMap(([key, { name }]) => {
        const price = priceOf(prices, name);
        if (price === undefined) return [];
        return [{ key, cost: (tokens * price.input + answerTokens * price.output) / 1e6 }];
      })
      .sort((a, b) => a.cost - b.cost);
    if (cheapest === undefined) return undefined;
    const { key, cost } = cheapest;
    return { model: key, why: `about ${cost.toPrecision(2)} for ${tokens} tokens` };
  };
};

const misuse = (message: string): MillraceError => new MillraceError('config', message);

const checked = (key: string, model: Model): Model => {
  const [accepts, what] = isModel;
  if (accepts(model)) return model;
  throw misuse(`routeModels(): the model '${key}' must be ${what}.`);
};

/** Checks numbers by key; each key must be one of `keys`. */
const checkNumbers = (owner: string, numbers: unknown, keys?: object): void => {
  if (!isRecord(numbers)) throw misuse(`${owner} takes a number of tokens by key of the model.`);
  const rule = numberFrom(0);
  const allowed = Object.keys(keys ?? numbers).map((key) => [key, rule] as const);
  checkOptions(owner, numbers, Object.fromEntries(allowed));
};

/** The limits of policies by length, which only a router can compare with its models. */
const limitsOf = new WeakMap<RoutePolicy, unknown>();

const rules: Readonly<Record<keyof RouteModelsOptions, Rule>> = {
  models: isObject,
  by: isFunction,
  eachTurn: isFlag,
  breaker: [(value) => typeof value === 'function' && 'stateOf' in value, 'a circuitBreaker()'],
};

const costRules: Readonly<Record<keyof ByCostOptions, Rule>> = {
  prices: isObject,
  contextTokens: isObject,
  answerTokens: numberFrom(0),
};
