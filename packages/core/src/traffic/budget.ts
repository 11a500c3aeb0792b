import { of, tap, throwError } from 'rxjs';
import type { AgentOptions } from '../agent.js';
import type { CallInfo } from '../call-info.js';
import { MillraceError } from '../errors.js';
import { checkOptions, defined, isObject, oneOf, type Rule, wholeNumber } from '../options.js';
import { phase, type PhaseFactory } from '../phase.js';
import { nativePhases } from '../phase-list.js';
import type { CallStage } from '../pipeline/call-stage.js';
import { insertStageAfter } from '../pipeline/native-pipeline.js';
import { runLoop } from '../pipeline/run-loop.js';
import type { InputSchema } from '../schema.js';
import { close$ } from '../phases/closing.js';
import type { Run } from '../run.js';
import { addUsage, noUsage, type Usage } from '../usage.js';
import { costOf, type PriceTable, priceOf } from './prices.js';

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
  /** What becomes of a call when it is used up: a closing answer without tools, which is beyond the budget, or a `budget` error. Default: `answer`. */
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

/** One budget for all calls of all agents that it is given to. Calls that run at the same time may exceed it by the requests that are under way. */
export const sharedBudget = (options: BudgetOptions): Budget =>
  createBudget('sharedBudget()', options, true);

/**
 * Holds an agent to budgets: they are looked at before each turn, and all that a call has spent counts, also what was spent by its last request. A call for
 * which one is used up ends with reason `budget` and a closing answer, or with a `budget` error, and a `warning` says which.
 */
export const withBudget = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  budgets: Budget | readonly Budget[],
): AgentOptions<Output> => {
  const { watched, settled } = watch([budgets].flat().map(accountsOf));
  return {
    ...options,
    phases: [watched, ...(options.phases ?? nativePhases)],
    pipeline: insertStageAfter(runLoop, settled, options.pipeline),
  };
};

/** What one call, or all of them, have spent. */
interface Account {
  spent: Spent;
}

interface Accounts {
  readonly options: BudgetOptions;
  /** Adds to what the call has spent, and gives what counts. */
  readonly spend: (call: CallInfo, more: Spent) => Spent;
}

const known = new WeakMap<Budget, Accounts>();

const accountsOf = (given: Budget): Accounts => {
  const accounts = known.get(given);
  if (accounts !== undefined) return accounts;
  throw new MillraceError('config', 'withBudget() takes what budget() and sharedBudget() make.');
};

const nothingSpent: Spent = { usage: noUsage, tokens: 0, money: 0, toolCalls: 0 };

const createBudget = (owner: string, given: BudgetOptions, isShared: boolean): Budget => {
  checkOptions(owner, given, rules);
  const options = defined(given);
  if (options.money !== undefined && options.prices === undefined) {
    throw new MillraceError(
      'config',
      `${owner}: 'money' needs 'prices', such as { 'gpt-5-mini': { input: 0.25, output: 2 } } for a million tokens.`,
    );
  }
  const all: Account = { spent: nothingSpent };
  const perCall = new WeakMap<CallInfo, Account>();
  const own = (call: CallInfo): Account => {
    const before = perCall.get(call);
    if (before !== undefined) return before;
    const account: Account = { spent: nothingSpent };
    perCall.set(call, account);
    return account;
  };
  const made: Budget = {
    options,
    get spent() {
      return all.spent;
    },
  };
  known.set(made, {
    options,
    spend: (call, more) => {
      all.spent = sum(all.spent, more);
      if (isShared) return all.spent;
      const account = own(call);
      account.spent = sum(account.spent, more);
      return account.spent;
    },
  });
  return made;
};

const sum = (a: Spent, b: Spent): Spent => ({
  usage: addUsage(a.usage, b.usage),
  tokens: a.tokens + b.tokens,
  money: a.money + b.money,
  toolCalls: a.toolCalls + b.toolCalls,
});

/** Counts what a run has spent since it was looked at last: before each turn, where one that has spent too much is closed, and behind its end. */
const watch = (
  all: readonly Accounts[],
): { readonly watched: PhaseFactory; readonly settled: CallStage } => {
  const seen = new WeakMap<CallInfo, Pick<Run, 'usage' | 'executed'>>();
  const meter = (call: CallInfo, model: string, run: Run): readonly Excess[] => {
    const before = seen.get(call) ?? { usage: noUsage, executed: 0 };
    seen.set(call, run);
    return all.flatMap(({ options, spend }) => {
      const what = excess(options, spend(call, spentSince(before, run, options, model)));
      return what === undefined ? [] : [{ what, options }];
    });
  };
  const watched: PhaseFactory = (context) =>
    phase((run) => {
      const [first] = meter(context.call, context.model.name, run);
      if (first === undefined) return of(run);
      const mute = (partial?: string): MillraceError => usedUp(first.what, partial);
      if (first.options.onExceed === 'error') return throwError(() => mute());
      context.hooks.report(run.iteration, { type: 'warning', message: first.what });
      return close$(run, context, { reason: 'budget', what: first.what, mute });
    });
  const settled: CallStage = ({ call }) =>
    tap(({ plan, run }) => {
      if (run !== undefined) meter(call, plan.model.name, run);
    });
  return { watched, settled };
};

interface Excess {
  /** What is used up. */
  readonly what: string;
  readonly options: BudgetOptions;
}

const spentSince = (
  before: Pick<Run, 'usage' | 'executed'>,
  { usage, executed }: Run,
  { prices }: BudgetOptions,
  model: string,
): Spent => {
  const more = lessUsage(usage, before.usage);
  return {
    usage: more,
    tokens: tokensIn(more),
    money: prices === undefined ? 0 : costOf(more, priceOf(model, prices)),
    toolCalls: executed - before.executed,
  };
};

const excess = (
  { tokens = Infinity, money = Infinity, toolCalls = Infinity }: BudgetOptions,
  spent: Spent,
): string | undefined => {
  if (spent.tokens >= tokens) return `The budget of ${tokens} tokens is used up.`;
  if (spent.money >= money) return `The budget of ${money} is used up.`;
  return spent.toolCalls >= toolCalls
    ? `The budget of ${toolCalls} tool calls is used up.`
    : undefined;
};

const usedUp = (what: string, partial: string | undefined): MillraceError =>
  new MillraceError('budget', `${what} Raise it, or set onExceed: 'answer' for a closing answer.`, {
    ...(partial === undefined ? {} : { partial }),
  });

const tokensIn = ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
}: Usage): number => inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens;

const lessUsage = (a: Usage, b: Usage): Usage => ({
  inputTokens: a.inputTokens - b.inputTokens,
  outputTokens: a.outputTokens - b.outputTokens,
  cacheReadTokens: a.cacheReadTokens - b.cacheReadTokens,
  cacheWriteTokens: a.cacheWriteTokens - b.cacheWriteTokens,
});

const positive: Rule = [
  (value) => typeof value === 'number' && value > 0,
  'a number greater than 0',
];

const rules: Readonly<Record<keyof BudgetOptions, Rule>> = {
  tokens: wholeNumber(1),
  money: positive,
  prices: isObject,
  toolCalls: wholeNumber(1),
  onExceed: oneOf('answer', 'error'),
};
