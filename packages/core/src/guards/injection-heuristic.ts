import { misuse } from '../errors.js';
import type { Interceptor } from '../interceptor.js';
import { isRecord } from '../json.js';
import { checkOptions, defined, type Rule } from '../options.js';
import { isPositive } from '../traffic/token-bucket.js';
import { guardInput, type GuardOptions, guardRules, readingsOf } from './guard-input.js';
import { stateless } from './guard-patterns.js';
import {
  type InjectionPattern,
  type InjectionSignal,
  injectionSignals,
} from './injection-signals.js';

/** When the heuristic refuses. */
export interface InjectionHeuristicOptions extends GuardOptions {
  /** The sum of weights from which an input is refused. Default: 3. */
  readonly threshold?: number;
  /** Signs of one's own, beside those that there are. */
  readonly extra?: readonly InjectionPattern[];
}

/**
 * Refuses an input whose `injectionSignals` weigh too much together. It is a heuristic: easy to get around for whoever tries, and
 * wrong about some who mean no harm, such as those who write about injections. It stops what is crude, and secures nothing:
 * what a call must not do, its tools must not be able to. To log instead of refusing, call `injectionSignals` in a guard of your
 * own that says `true`; for the results of tools, call it in `guardResults`.
 */
export const injectionHeuristic = (options: InjectionHeuristicOptions = {}): Interceptor => {
  checkOptions('injectionHeuristic()', options, rules);
  const { threshold = 3, extra = [], ...named } = options;
  checkExtra(extra);
  return guardInput(
    (asked) => {
      const signals = readingsOf(asked)
        .map((text) => injectionSignals(text, extra))
        .reduce<readonly InjectionSignal[]>(heavier, []);
      const weight = weightOf(signals);
      if (weight < threshold) return true;
      const list = signals.map((it) => `${it.name} ${it.weight}`).join(', ');
      return {
        allowed: false,
        reason: `its signals weigh ${weight} (${list}), and less than ${threshold} is allowed`,
      };
    },
    { name: 'injectionHeuristic', ...defined(named) },
  );
};

const weightOf = (signals: readonly InjectionSignal[]): number =>
  signals.reduce((sum, { weight }) => sum + weight, 0);

const heavier = (a: readonly InjectionSignal[], b: readonly InjectionSignal[]) =>
  weightOf(b) > weightOf(a) ? b : a;

const checkExtra = (extra: readonly unknown[]): void => {
  for (const it of extra) {
    const isWhole =
      isRecord(it) && typeof it['name'] === 'string' && it['pattern'] instanceof RegExp;
    if (!isWhole) {
      throw misuse(
        "injectionHeuristic(): each of 'extra' is { name, pattern, weight? } with a RegExp, such as { name: 'codeword', pattern: /xyzzy/i }.",
      );
    }
    checkOptions("injectionHeuristic(): one of 'extra'", it, extraRules);
    if (it['pattern'] instanceof RegExp) stateless('injectionHeuristic()', it['pattern']);
  }
};

const isRegExp: Rule = [(value) => value instanceof RegExp, 'a RegExp'];

const extraRules: Readonly<Record<keyof InjectionPattern, Rule>> = {
  name: guardRules.name,
  pattern: isRegExp,
  weight: isPositive,
};

const rules: Readonly<Record<keyof InjectionHeuristicOptions, Rule>> = {
  ...guardRules,
  threshold: isPositive,
  extra: [Array.isArray, 'a list of { name, pattern, weight? }'],
};
