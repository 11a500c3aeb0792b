import { concat, concatMap, finalize, map, NEVER, of, tap, throwError } from 'rxjs';
import type { AgentOptions } from '../agent.js';
import type { CallInfo } from '../call-info.js';
import { MillraceError } from '../errors.js';
import { type Interceptor, prepare } from '../interceptor.js';
import {
  checkOptions,
  defined,
  isObject,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../options.js';
import { phase, type PhaseFactory } from '../phase.js';
import { nativePhases } from '../phase-list.js';
import type { CallStage } from '../pipeline/call-stage.js';
import { insertStageAfter, nativePipeline } from '../pipeline/native-pipeline.js';
import { runLoop } from '../pipeline/run-loop.js';
import type { InputSchema } from '../schema.js';
import { close$ } from '../phases/closing.js';
import type { Run } from '../run.js';
import { addUsage, noUsage, type Usage } from '../usage.js';
import { type Meter, metered } from './metered.js';
import { checkPrices, costOf, priceIn, type PriceTable, priceOf } from './prices.js';

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
  /**
   * What becomes of a call when it is used up: a closing answer without tools, which is beyond the budget, or a `budget` error. A call that begins with nothing left
   * always errors: it has nothing to answer from. Default: `answer`.
   */
  readonly onExceed?: 'answer' | 'error';
}

/** What has been used of a budget. */
export interface Spent {
  readonly usage: Usage;
  readonly tokens: number;
  /** 0 without prices. */
  readonly money: number;
  readonly toolCalls: number;
}

/** A budget, and what is left of it. */
export interface Budget {
  /** How much there is for whoever shares it; each call of its own has it anew where it is not shared. */
  readonly options: BudgetOptions;
  /** What all calls have spent together so far. */
  readonly spent: Spent;
}

/** A budget that each call has for itself. Put it around the options of an agent with `withBudget`. */
export const budget = (options: BudgetOptions): Budget => createBudget('budget()', options, false);

/**
 * One budget for all calls of all agents that it is given to. Calls that run at the same time may exceed it by the requests that are under way. It lasts as long as
 * it is held: make one for each month, and begin it with what has been `spent` before where a process begins anew.
 */
export const sharedBudget = (options: BudgetOptions, spent: Partial<Spent> = {}): Budget => {
  checkOptions("sharedBudget(): 'spent'", spent, spentRules);
  return createBudget('sharedBudget()', options, true, { ...nothingSpent, ...defined(spent) });
};

/**
 * Holds an agent to budgets: they are looked at before each turn, and every request counts, also one that fails or is left. A call for
 * which one is used up ends with reason `budget` and a closing answer, or with a `budget` error, and a `warning` says which. Sub-agents
 * count where they are held to the same budget. Not seen are requests of other models than the call's, such as those of summaries.
 */
export const withBudget = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  budgets: Budget | readonly Budget[],
): AgentOptions<Output> => {
  const all = [budgets].flat().map(accountsOf);
  const executed = new WeakMap<CallInfo, number>();
  const countTools = (call: CallInfo, run: Run): void => {
    const toolCalls = run.executed - (executed.get(call) ?? 0);
    executed.set(call, run.executed);
    if (toolCalls > 0) all.forEach(({ spend }) => spend(call, { toolCalls }));
  };
  const watched: PhaseFactory = (context) =>
    phase((run) => {
      countTools(context.call, run);
      const first = all.find(({ excess }) => excess(context.call) !== undefined);
      const what = first?.excess(context.call);
      if (first === undefined || what === undefined) return of(run);
      const mute = (partial?: string): MillraceError => usedUp(what, partial);
      if (first.options.onExceed === 'error' || run.iteration === 0) {
        return throwError(() => mute());
      }
      context.hooks.report(run.iteration, { type: 'warning', message: what });
      return close$(run, context, { reason: 'budget', what, mute });
    });
  const opened: CallStage = ({ call }) =>
    concatMap((state) => {
      const closes = all.map(({ open }) => open(call));
      return concat(of(state), NEVER).pipe(finalize(() => closes.forEach((close) => close())));
    });
  const settled: CallStage = ({ call }) =>
    tap(({ run }) => {
      if (run !== undefined) countTools(call, run);
    });
  return {
    ...options,
    interceptors: [...(options.interceptors ?? []), metering(all)],
    phases: [watched, ...(options.phases ?? nativePhases)],
    pipeline: [opened, ...insertStageAfter(runLoop, settled, options.pipeline ?? nativePipeline)],
  };
};

/** Behind other interceptors, which may give the call another model. */
const metering = (all: readonly Account[]): Interceptor =>
  prepare(
    map((preparation) => {
      const { call, options } = preparation;
      const { model } = options;
      if (model === undefined) return preparation;
      const meter: Meter = (usage, name) => {
        all.forEach(({ options: { prices }, spend }) => {
          const price = prices && (priceIn(name, prices) ?? priceIn(model.name, prices));
          const money = price === undefined ? 0 : costOf(usage, price);
          spend(call, { usage, tokens: tokensIn(usage), money });
        });
      };
      const begin = (name: string): void => {
        all.forEach(({ options: { prices } }) => prices && priceOf(name, prices));
      };
      return { ...preparation, options: { ...options, model: metered(model, meter, begin) } };
    }),
    { name: 'withBudget', priority: 10_000 },
  );

interface Account {
  readonly options: BudgetOptions;
  /** Adds to what the call, and all, have spent. */
  readonly spend: (call: CallInfo, more: Partial<Spent>) => void;
  /** A call begins; what it gives is called at its end. */
  readonly open: (call: CallInfo) => () => void;
  /** What is used up for the call. */
  readonly excess: (call: CallInfo) => string | undefined;
}

interface Family {
  spent: Spent;
  calls: number;
}

const known = new WeakMap<Budget, Account>();

const accountsOf = (given: Budget): Account => {
  const account = known.get(given);
  if (account !== undefined) return account;
  throw new MillraceError('config', 'withBudget() takes what budget() and sharedBudget() make.');
};

const nothingSpent: Spent = { usage: noUsage, tokens: 0, money: 0, toolCalls: 0 };

const createBudget = (
  owner: string,
  given: BudgetOptions,
  isShared: boolean,
  spent = nothingSpent,
): Budget => {
  checkOptions(owner, given, rules);
  const options = defined(given);
  if (options.money !== undefined && options.prices === undefined) {
    throw new MillraceError(
      'config',
      `${owner}: 'money' needs 'prices', such as { 'gpt-5-mini': { input: 0.25, output: 2 } } for a million tokens.`,
    );
  }
  checkPrices(owner, options.prices);
  let all = spent;
  /** By the family of a call, as long as one of it runs: what its sub-agents spend is its own. */
  const families = new Map<string, Family>();
  const made: Budget = {
    options,
    get spent() {
      return all;
    },
  };
  known.set(made, {
    options,
    spend: ({ rootId }, more) => {
      all = sum(all, more);
      const family = families.get(rootId);
      if (family !== undefined) family.spent = sum(family.spent, more);
    },
    open: ({ rootId }) => {
      const family = families.get(rootId) ?? { spent: nothingSpent, calls: 0 };
      family.calls += 1;
      families.set(rootId, family);
      return () => {
        family.calls -= 1;
        if (family.calls === 0) families.delete(rootId);
      };
    },
    excess: ({ rootId }) =>
      excess(options, isShared ? all : (families.get(rootId)?.spent ?? nothingSpent)),
  });
  return made;
};

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

const usedUp = (what: string, partial: string | undefined): MillraceError =>
  new MillraceError('budget', `${what} Raise it, or wait for another one.`, {
    ...(partial === undefined ? {} : { partial }),
  });

const tokensIn = ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
}: Usage): number => inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;

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
