import { of, throwError } from 'rxjs';
import { MillraceError, misuse } from '../../values/errors.js';
import type { Layer, Context, PhaseFactory } from '../../seams/layer.js';
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
import { addUsage, countsIn, noUsage, tokensIn, type Usage } from '../../values/usage.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { withMeter } from './meter.js';
import { checkPrices, moneyFor, priceOf, type PriceTable, requirePrice } from './prices.js';

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
  if (prices !== undefined) checkPrices(owner, prices);
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
        () => prices && requirePrice(prices, model.name),
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
  const price = prices && (priceOf(prices, model) ?? priceOf(prices, requested));
  const money = price === undefined ? 0 : moneyFor(usage, price);
  return { usage, tokens: tokensIn(usage), money };
};

const costOfReplayed = (
  prices: PriceTable | undefined,
  { models, toolCalls }: Spending,
): Partial<Spent> =>
  Object.entries(models).reduce<Spent>(
    (spent, [model, usage]) => sum(spent, costIn(prices, countsIn(usage).usage, model)),
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
