import { type AnyRun, MillraceError } from 'millrace';
import { checkOptions, isFlag, isRecord, isSameJson, type Rule } from 'millrace/values';
import type { EvalTrial, Score, Scorer } from './score.js';

/** A tool call that a trajectory must have: the name of the tool, also with arguments. */
export type ExpectedCall =
  | string
  | {
      readonly name: string;
      /** The arguments, or a function that checks them. Default: any arguments. */
      readonly input?: Readonly<Record<string, unknown>> | ((input: unknown) => boolean);
    };

/** The default of all options is the strictest: these calls, in this order, and no others. */
export interface CalledToolsOptions {
  /** Whether the calls may come in any order. Default: false. */
  readonly anyOrder?: boolean | undefined;
  /** Whether other calls may come before, between and after these. Default: false. */
  readonly allowOthers?: boolean | undefined;
  /** Whether a call may have more arguments than expected, also in nested objects. Default: false. */
  readonly allowMoreInput?: boolean | undefined;
}

/**
 * Scores the trajectory: the tool calls of the reply, in the order in which the model asked for them. The score is the part of the
 * calls that match, of all calls or, with `allowOthers`, of the expected ones. An empty list expects no call.
 *
 * @example
 * ```ts
 * const lookUpFirst = calledTools(['find_order', { name: 'refund', input: { id: 'A-17' } }]);
 * ```
 */
export const calledTools = <Expected = unknown>(
  expected: readonly ExpectedCall[] | ((trial: EvalTrial<Expected>) => readonly ExpectedCall[]),
  options: CalledToolsOptions = {},
): Scorer<Expected> => {
  checkOptions('calledTools()', options, rules);
  if (typeof expected !== 'function') checkCalls(expected);
  return (trial) => {
    const wanted = typeof expected === 'function' ? expected(trial) : expected;
    return scoreOfCalls(trial.reply, wanted, options);
  };
};

const rules: Readonly<Record<keyof CalledToolsOptions, Rule>> = {
  anyOrder: isFlag,
  allowOthers: isFlag,
  allowMoreInput: isFlag,
};

/** Compares the tool calls of a reply with the expected ones. */
export const scoreOfCalls = (
  { toolCalls }: { readonly toolCalls: readonly AnyRun[] },
  wanted: readonly ExpectedCall[],
  { anyOrder = false, allowOthers = false, allowMoreInput = false }: CalledToolsOptions,
): Score => {
  checkCalls(wanted);
  const fits = (want: ExpectedCall, call: AnyRun): boolean => isMatch(want, call, allowMoreInput);
  const matched = anyOrder
    ? pairsInAnyOrder(wanted, toolCalls, fits)
    : pairsInOrder(wanted, toolCalls, fits);
  const all = allowOthers ? wanted.length : Math.max(wanted.length, toolCalls.length);
  if (matched === all) return { score: 1 };
  const names = (calls: readonly (ExpectedCall | AnyRun)[]): string =>
    calls.length === 0 ? 'no tool' : calls.map(shown).join(', ');
  return {
    score: matched / all,
    reason: `Expected ${names(wanted)}${anyOrder ? ' in any order' : ''}; called ${names(toolCalls)}.`,
  };
};

const checkCalls = (calls: unknown): void => {
  const areCalls =
    Array.isArray(calls) &&
    calls.every(
      (call) =>
        typeof call === 'string' ||
        (isRecord(call) &&
          typeof call['name'] === 'string' &&
          ['undefined', 'object', 'function'].includes(typeof call['input'])),
    );
  if (areCalls) return;
  throw new MillraceError(
    'config',
    "calledTools() needs a list of tool names or calls, such as ['find_order', { name: 'refund', input: { id: 'A-17' } }].",
  );
};

const isMatch = (want: ExpectedCall, call: AnyRun, allowMore: boolean): boolean => {
  const { name, input }: Exclude<ExpectedCall, string> =
    typeof want === 'string' ? { name: want } : want;
  if (name !== call.name) return false;
  if (input === undefined) return true;
  if (typeof input === 'function') return input(call.input);
  return allowMore ? isPart(input, call.input) : isSameJson(input, call.input);
};

/** Whether a value has all that is in `part`: objects may have more keys, lists are equal in length. */
const isPart = (part: unknown, whole: unknown): boolean => {
  if (isRecord(part) && isRecord(whole)) {
    return Object.entries(part).every(
      ([key, value]) => Object.hasOwn(whole, key) && isPart(value, whole[key]),
    );
  }
  if (Array.isArray(part) && Array.isArray(whole)) {
    return (
      part.length === whole.length && part.every((value, index) => isPart(value, whole[index]))
    );
  }
  return isSameJson(part, whole);
};

type Fits = (want: ExpectedCall, call: AnyRun) => boolean;

/** The length of the longest common subsequence. */
const pairsInOrder = (
  wanted: readonly ExpectedCall[],
  calls: readonly AnyRun[],
  fits: Fits,
): number => {
  const none: readonly number[] = Array.from({ length: calls.length + 1 }, () => 0);
  const last = wanted.reduce<readonly number[]>((above, want) => {
    const row: number[] = [0];
    calls.forEach((call, at) => {
      const with_ = fits(want, call) ? (above[at] ?? 0) + 1 : 0;
      row.push(Math.max(with_, above[at + 1] ?? 0, row[at] ?? 0));
    });
    return row;
  }, none);
  return last.at(-1) ?? 0;
};

/** The size of the largest matching of a bipartite graph: Kuhn's algorithm. A call that fits two expected ones may be needed for the later one. */
const pairsInAnyOrder = (
  wanted: readonly ExpectedCall[],
  calls: readonly AnyRun[],
  fits: Fits,
): number => {
  const edges = wanted.map((want) => calls.map((call) => fits(want, call)));
  const ownerOf = new Map<number, number>();
  const assign = (want: number, tried: Set<number>): boolean =>
    calls.some((_call, at) => {
      if (edges[want]?.[at] !== true || tried.has(at)) return false;
      tried.add(at);
      const owner = ownerOf.get(at);
      if (owner !== undefined && !assign(owner, tried)) return false;
      ownerOf.set(at, want);
      return true;
    });
  return wanted.filter((_want, index) => assign(index, new Set())).length;
};

/** Maximum number of characters of arguments in a reason. */
const maxInput = 80;

const shown = (call: ExpectedCall | AnyRun): string => {
  if (typeof call === 'string') return call;
  const { name, input } = call;
  if (input === undefined) return name;
  const text = typeof input === 'function' ? '…' : JSON.stringify(input);
  return `${name}(${text.length > maxInput ? `${text.slice(0, maxInput)}…` : text})`;
};
