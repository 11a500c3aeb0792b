import type { CallInfo } from '../call-info.js';
import { MillraceError, misuse } from '../errors.js';
import {
  checkOptions,
  defined,
  isObject,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from '../options.js';
import { addUsage, noUsage, type Usage } from '../usage.js';
import { checkPrices, type PriceTable } from './prices.js';

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

/** What calls spend of a budget. */
export interface Account {
  readonly options: BudgetOptions;
  /** Adds to what the call, and all, have spent. */
  readonly spend: (call: CallInfo, more: Partial<Spent>) => void;
  /** Adds what a call had spent before it was broken off: all have spent it already. */
  readonly recall: (call: CallInfo, more: Partial<Spent>) => void;
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

/** The account of a budget, or a `config` error where it is none. */
export const accountOf = (given: Budget): Account => {
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
  if ((options.tokens ?? options.money ?? options.toolCalls) === undefined) {
    throw misuse(`${owner} needs one of tokens, money and toolCalls: what is to be limited.`);
  }
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
  const recall: Account['recall'] = ({ rootId }, more) => {
    const family = families.get(rootId);
    if (family !== undefined) family.spent = sum(family.spent, more);
  };
  known.set(made, {
    options,
    spend: (call, more) => {
      all = sum(all, more);
      recall(call, more);
    },
    recall,
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
