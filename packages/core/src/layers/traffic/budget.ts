import { defer, of, tap, throwError } from 'rxjs';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Layer, LayerContext } from '../../seams/layer.js';
import type { Model } from '../../models/model.js';
import { around } from '../../models/timeouts.js';
import {
  checkOptions,
  defined,
  isObject,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../../values/options.js';
import { phase, type PhaseFactory } from '../../seams/phase.js';
import { close$ } from '../../phases/limit.js';
import { type Spending, watchingSpending } from '../../seams/spending.js';
import { cell, replayedSteps } from '../../step.js';
import { updatedUsage } from '../../phases/message-builder.js';
import { addUsage, noUsage, tokensIn, type Usage } from '../../values/usage.js';

/** What may be used up. */
export interface BudgetOptions {
  /** Tokens of all requests: what goes in, what comes out, and what the cache gives and takes. */
  readonly tokens?: number;
  /** What requests may cost, in the currency of `prices`. */
  readonly money?: number;
  /** What a million tokens of each model cost. Needed for `money`. */
  readonly prices?: PriceTable;
  /** Tools that are run. */
  readonly toolCalls?: number;
  /** What a call does at the limit: a closing answer without tools, or a `budget` error. A call with no budget at its start always errors. Default: `answer`. */
  readonly onExceed?: 'answer' | 'error';
}

declare module '../../values/reply.js' {
  interface EndReasons {
    /** A budget was used up. */
    readonly budget: true;
  }
}

/** What has been used of a budget. */
export interface Spent {
  readonly usage: Usage;
  readonly tokens: number;
  /** 0 without prices. */
  readonly money: number;
  readonly toolCalls: number;
}

/** A budget, and what is left of it: a layer for the `use` of an agent or a call. */
export interface Budget extends Layer {
  readonly options: BudgetOptions;
  /** What all calls together have spent so far. */
  readonly spent: Spent;
}

/**
 * Limits what each call may spend, its sub-agents included. Checked before each turn: the call ends with reason `budget` and a closing
 * answer, or with a `budget` error, and a `warning`. Every request counts, also failed ones. A resumed call keeps its costs.
 */
export const budget = (options: BudgetOptions): Budget => createBudget('budget()', options, false);

/** A budget for all calls of all agents that use it, for the lifetime of the object; concurrent calls may exceed it by the requests under way. Pass what was `spent` before if a process restarts. */
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
    throw misuse(`${owner} needs one of tokens, money and toolCalls: what is to be limited.`);
  }
  if (options.money !== undefined && prices === undefined) {
    throw new MillraceError(
      'config',
      `${owner}: 'money' needs 'prices', such as { 'gpt-5-mini': { input: 0.25, output: 2 } } for a million tokens.`,
    );
  }
  checkPrices(owner, prices);
  let all = before;
  const ofFamily = cell('family', () => ({ spent: nothingSpent }));
  /** Adds what the call spends now. */
  const spend = ({ local }: Pick<LayerContext, 'local'>, more: Partial<Spent>): void => {
    all = sum(all, more);
    recall({ local }, more);
  };
  /** Adds what the call had spent before it was resumed: the shared total has it already. */
  const recall = ({ local }: Pick<LayerContext, 'local'>, more: Partial<Spent>): void => {
    const family = local(ofFamily);
    family.spent = sum(family.spent, more);
  };
  const watched: PhaseFactory = (context) =>
    phase((run) => {
      const what = excess(options, isShared ? all : context.local(ofFamily).spent);
      if (what === undefined) return of(run);
      const mute = (partial?: string): MillraceError => usedUp(what, partial);
      // A call that begins with nothing left has nothing to answer from.
      if (onExceed === 'error' || run.iteration === 0) return throwError(() => mute());
      context.hooks.report(run.iteration, { type: 'warning', message: what });
      return close$(run, context, { reason: 'budget', what, mute });
    });
  return {
    name: isShared ? 'sharedBudget' : 'budget',
    priority: 10,
    inherit: true,
    options,
    get spent() {
      return all;
    },
    turn: (phases) => [watched, ...phases],
    model: (context) => (model) =>
      metered(
        model,
        (usage, name) => spend(context, costIn(prices, usage, name, model.name)),
        (name) => prices && priceOf(name, prices),
      ),
    step: (context) => (next) =>
      // Requests are counted by the model, also those that are cancelled.
      watchingSpending(
        next,
        '',
        {
          live: ({ toolCalls }) => spend(context, { toolCalls }),
          replayed: (spending) => recall(context, costOfAll(prices, spending)),
        },
        context.local(replayedSteps),
      ),
  };
};

const costIn = (
  prices: PriceTable | undefined,
  usage: Usage,
  model: string,
  asked = model,
): Partial<Spent> => {
  const price = prices && (priceIn(model, prices) ?? priceIn(asked, prices));
  const money = price === undefined ? 0 : costOf(usage, price);
  return { usage, tokens: tokensIn(usage), money };
};

const costOfAll = (
  prices: PriceTable | undefined,
  { models, toolCalls }: Spending,
): Partial<Spent> =>
  Object.entries(models).reduce<Spent>(
    (spent, [model, usage]) => sum(spent, costIn(prices, usage, model)),
    { ...nothingSpent, toolCalls },
  );

const usedUp = (what: string, partial: string | undefined): MillraceError =>
  new MillraceError('budget', `${what} Raise it, or wait for another one.`, {
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

const excess = (
  { tokens = Infinity, money = Infinity, toolCalls = Infinity }: BudgetOptions,
  spent: Spent,
): string | undefined => {
  if (spent.tokens >= tokens) return `The budget of ${tokens} tokens is used up.`;
  if (spent.money >= money) return 'The budget of money is used up.';
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

/** Hears what a request has cost, and which model has answered it. */
type Meter = (usage: Usage, model: string) => void;

/** Reports the cost of each request, as far as the provider has reported it, also if it fails or is cancelled. */
const metered = (model: Model, meter: Meter, begin: (model: string) => void): Model =>
  around(model, (request, context) =>
    defer(() => {
      begin(model.name);
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
              if (chunk.type !== 'restart') return;
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

/** What a million tokens of a model cost, in any currency. */
export interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that was in the cache. Default: as `input`. */
  readonly cacheRead?: number;
  /** Input that was put into it. Default: as `input`. */
  readonly cacheWrite?: number;
}

/** Prices by the names of models, as events call them; one under `*` is for all others. */
export type PriceTable = Readonly<Record<string, Price>>;

/** Refuses prices that are no prices: a budget must not take them for nothing. */
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

/** The price of a model, or a `config` error where there is none: a budget must not take it for free. */
const priceOf = (model: string, prices: PriceTable): Price => {
  const price = priceIn(model, prices);
  if (price !== undefined) return price;
  throw new MillraceError(
    'config',
    `The budget has no price for the model '${model}'. Add '${model}' to 'prices', or '*' for all others. It has: ${Object.keys(prices).join(', ')}.`,
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
