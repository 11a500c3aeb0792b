import { defer, of, tap, throwError } from 'rxjs';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Layer, Context, PhaseFactory } from '../../seams/layer.js';
import type { Model } from '../../models/model.js';
import { aroundModel } from '../../models/around-model.js';
import { defined } from '../../values/json.js';
import {
  checkOptions,
  isObject,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import { phase } from '../../seams/phase.js';
import { closeRun } from '../../phases/limit.js';
import { type Spending, watchingSpending } from '../../seams/spending.js';
import { cell } from '../../step.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { addUsage, noUsage, tokensIn, type Usage } from '../../values/usage.js';
import { layerPlaces } from '../../seams/layer-places.js';

/** Limits of a budget, at least one of `tokens`, `money` and `toolCalls`. */
export interface BudgetOptions {
  /** Tokens of all requests: input, output, cache reads and cache writes. */
  readonly tokens?: number | undefined;
  /** Maximum cost of all requests, in the currency of `prices`. */
  readonly money?: number | undefined;
  /** Prices per million tokens, by model. Required for `money`. */
  readonly prices?: PriceTable | undefined;
  readonly toolCalls?: number | undefined;
  /** At the limit: close without tools, or error; always errors if nothing is left at the start. Default: `answer`. */
  readonly onExceed?: 'answer' | 'error' | undefined;
}

declare module '../../values/reply.js' {
  interface EndReasons {
    readonly budget: true;
  }
}

export interface Spent {
  readonly usage: Usage;
  readonly tokens: number;
  /** 0 without prices. */
  readonly money: number;
  readonly toolCalls: number;
}

/** A budget and what was spent: a layer for the `use` of an agent or a call. */
export interface Budget extends Layer {
  readonly options: BudgetOptions;
  readonly spent: Spent;
}

/**
 * Limits what each call may spend, including its sub-agents. Checked before each turn: the call ends with reason
 * `budget`, a closing answer and a `warning`, or a `budget` error. Failed requests and those before a resume count.
 */
export const budget = (options: BudgetOptions): Budget => createBudget('budget()', options, false);

/**
 * A budget shared by all calls of all agents that use it, for the lifetime of the object. Concurrent calls may exceed
 * it by the requests in flight. After a restart of the process, pass what was `spent` before.
 */
export const sharedBudget = (options: BudgetOptions, spent: Partial<Spent> = {}): Budget => {
  checkOptions("sharedBudget(): 'spent'", spent, spentRules);
  return createBudget('sharedBudget()', options, true, { ...nothingSpent, ...defined(spent) });
};

const nothingSpent: Spent = { usage: noUsage, tokens: 0, money: 0, toolCalls: 0 };

const createBudget = (
  owner: string,
  given: BudgetOptions,
  isShared: boolean,
  before = nothingSpent,
): Budget => {
  checkOptions(owner, given, rules);
  const options = defined(given);
  const { prices, onExceed } = options;
  if ((options.tokens ?? options.money ?? options.toolCalls) === undefined) {
    throw misuse(`${owner} needs at least one limit: tokens, money or toolCalls.`);
  }
  if (options.money !== undefined && prices === undefined) {
    throw new MillraceError(
      'config',
      `${owner}: 'money' needs 'prices', such as { 'gpt-5-mini': { input: 0.25, output: 2 } } per million tokens.`,
    );
  }
  checkPrices(owner, prices);
  let all = before;
  const callTree = cell('family', () => ({ spent: nothingSpent }));
  const spend = ({ local }: Pick<Context, 'local'>, more: Partial<Spent>): void => {
    all = sum(all, more);
    addReplayed({ local }, more);
  };
  /** Adds what the call spent before it was resumed; the shared total includes it already. */
  const addReplayed = ({ local }: Pick<Context, 'local'>, more: Partial<Spent>): void => {
    const total = local(callTree);
    total.spent = sum(total.spent, more);
  };
  const checkBudget: PhaseFactory = (context, call) =>
    phase((run) => {
      const what = exceededLimit(options, isShared ? all : context.local(callTree).spent);
      if (what === undefined) return of(run);
      const unusable = (partial?: string): MillraceError => budgetExceeded(what, partial);
      // A call that starts over budget has nothing to answer from.
      if (onExceed === 'error' || run.iteration === 0) return throwError(() => unusable());
      context.hooks.report(run.iteration, { type: 'warning', message: what });
      return closeRun(run, context, call, { reason: 'budget', what, unusable });
    });
  return {
    name: isShared ? 'sharedBudget' : 'budget',
    priority: layerPlaces.budget,
    inherit: true,
    options,
    get spent() {
      return all;
    },
    turn: (phases) => [checkBudget, ...phases],
    model: (context) => (model) =>
      withMeter(
        model,
        (usage, name) => spend(context, costIn(prices, usage, name, model.name)),
        (name) => prices && priceOf(name, prices),
      ),
    step: (context) => (next) =>
      // The model layer counts requests, including cancelled ones.
      watchingSpending(next, context, {
        live: ({ toolCalls }) => spend(context, { toolCalls }),
        replayed: (spending) => addReplayed(context, costOfReplayed(prices, spending)),
      }),
  };
};

const costIn = (
  prices: PriceTable | undefined,
  usage: Usage,
  model: string,
  requested = model,
): Partial<Spent> => {
  const price = prices && (priceIn(model, prices) ?? priceIn(requested, prices));
  const money = price === undefined ? 0 : costOf(usage, price);
  return { usage, tokens: tokensIn(usage), money };
};

const costOfReplayed = (
  prices: PriceTable | undefined,
  { models, toolCalls }: Spending,
): Partial<Spent> =>
  Object.entries(models).reduce<Spent>(
    (spent, [model, usage]) => sum(spent, costIn(prices, usage, model)),
    { ...nothingSpent, toolCalls },
  );

const budgetExceeded = (what: string, partial: string | undefined): MillraceError =>
  new MillraceError('budget', `${what} Raise the limit or start with a new budget.`, {
    ...(partial === undefined ? {} : { partial }),
  });

const sum = (
  a: Spent,
  { usage = noUsage, tokens = 0, money = 0, toolCalls = 0 }: Partial<Spent>,
): Spent => ({
  usage: addUsage(a.usage, usage),
  tokens: a.tokens + tokens,
  money: a.money + money,
  toolCalls: a.toolCalls + toolCalls,
});

const exceededLimit = (
  { tokens = Infinity, money = Infinity, toolCalls = Infinity }: BudgetOptions,
  spent: Spent,
): string | undefined => {
  if (spent.tokens >= tokens) return `The budget of ${tokens} tokens is used up.`;
  if (spent.money >= money) return 'The money budget is used up.';
  return spent.toolCalls >= toolCalls
    ? `The budget of ${toolCalls} tool calls is used up.`
    : undefined;
};

const positive: Rule = [
  (value) => typeof value === 'number' && value > 0,
  'a number greater than 0',
];

const spentRules: Readonly<Record<keyof Spent, Rule>> = {
  usage: isObject,
  tokens: numberFrom(0),
  money: numberFrom(0),
  toolCalls: wholeNumber(0),
};

const rules: Readonly<Record<keyof BudgetOptions, Rule>> = {
  tokens: wholeNumber(1),
  money: positive,
  prices: isObject,
  toolCalls: wholeNumber(1),
  onExceed: oneOf('answer', 'error'),
};

type Meter = (usage: Usage, model: string) => void;

/** Meters each request with the usage reported so far, even if it fails or is cancelled. */
const withMeter = (model: Model, meter: Meter, checkModelPrice: (model: string) => void): Model =>
  aroundModel(model, (request, context) =>
    defer(() => {
      checkModelPrice(model.name);
      let { name } = model;
      let before = noUsage;
      let usage = noUsage;
      const settle = (): void => {
        const total = addUsage(before, usage);
        before = noUsage;
        usage = noUsage;
        meter(total, name);
      };
      return model
        .stream$(request, {
          ...context,
          report: (event) => {
            if (event.type === 'modelFallback' || event.type === 'modelRetry') {
              settle();
              name = event.type === 'modelRetry' ? event.model : event.to;
            }
            context.report(event);
          },
        })
        .pipe(
          tap({
            next: (chunk) => {
              if (chunk.type === 'usage') usage = updatedUsage(usage, chunk.usage);
              if (chunk.type !== 'restart' || chunk.isSameRequest === true) return;
              before = addUsage(before, usage);
              usage = noUsage;
            },
            complete: settle,
            error: settle,
            unsubscribe: settle,
          }),
        );
    }),
  );

/** The price of a million tokens of a model, in any currency. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input read from the cache. Default: the price of `input`. */
  readonly cacheRead?: number;
  /** Input written to the cache. Default: the price of `input`. */
  readonly cacheWrite?: number;
}

/** Prices by model name, as events report it; `*` applies to all other models. */
export type PriceTable = Readonly<Record<string, Price>>;

const checkPrices = (owner: string, prices: PriceTable = {}): void => {
  for (const [model, price] of Object.entries(prices)) {
    checkOptions(`${owner}: the price of '${model}'`, price, priceRules, ['input', 'output']);
  }
};

const priceRules: Readonly<Record<keyof Price, Rule>> = {
  input: numberFrom(0),
  output: numberFrom(0),
  cacheRead: numberFrom(0),
  cacheWrite: numberFrom(0),
};

const priceIn = (model: string, prices: PriceTable): Price | undefined => {
  const name = [model, '*'].find((it) => Object.hasOwn(prices, it));
  return name === undefined ? undefined : prices[name];
};

/** The price of a model. Throws `config` without one: the budget would count it as free. */
const priceOf = (model: string, prices: PriceTable): Price => {
  const price = priceIn(model, prices);
  if (price !== undefined) return price;
  throw new MillraceError(
    'config',
    `The budget has no price for the model '${model}'. Add '${model}' to 'prices', or '*' for all other models. Prices: ${Object.keys(prices).join(', ')}.`,
  );
};

const costOf = (usage: Usage, price: Price): number => {
  const { input, output, cacheRead = input, cacheWrite = input } = price;
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage;
  return (
    (inputTokens * input +
      outputTokens * output +
      cacheReadTokens * cacheRead +
      cacheWriteTokens * cacheWrite) /
    1e6
  );
};
