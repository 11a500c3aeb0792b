import { misuse } from '../errors.js';
import type { Interceptor } from '../interceptor.js';
import { isRecord } from '../json.js';
import { checkOptions, defined, type Rule } from '../options.js';
import { isPositive } from '../traffic/token-bucket.js';
import { guardInput, type GuardOptions, guardRules, readingsOf } from './guard-input.js';
import { cleaned, stateless, withoutMarks } from './guard-patterns.js';
import {
  encodedText,
  hiddenCharacters,
  hiddenText,
  namedPersona,
  signalPatterns,
} from './signal-patterns.js';

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

/** A sign that a text wants to be obeyed. */
export interface InjectionSignal {
  readonly name: string;
  /** How much it counts. */
  readonly weight: number;
}

/** A sign of one's own. */
export interface InjectionPattern {
  readonly name: string;
  /** Tested on the text as it came, and on the text without what is invisible. Without the flags `g` and `y`. */
  readonly pattern: RegExp;
  /** Default: 3. */
  readonly weight?: number;
}

/**
 * Lists the signs of a prompt injection that a text shows, each once, with its weight:
 *
 * | name               | weight | is                                                                              |
 * | ------------------ | ------ | ------------------------------------------------------------------------------- |
 * | `override`         | 3      | an order to ignore or forget earlier instructions, in nineteen languages          |
 * | `promptRequest`    | 3      | a request for the system prompt, in eight                                       |
 * | `persona`          | 3      | a persona without rules: developer mode, DAN, «pretend you have no restrictions» |
 * | `encodedOrders`    | 3      | base64 or hexadecimal text, to be decoded and obeyed                            |
 * | `hiddenText`       | 3      | text in invisible tags or variation selectors                                   |
 * | `chatTokens`       | 2      | what parts turns in the templates of models: `<\|im_start\|>`, `[INST]`, `<system>` |
 * | `hiddenCharacters` | 2      | invisible characters within Latin words, directions that are turned around      |
 * | `roleMarkers`      | 1      | a line such as `System:`                                                        |
 *
 * What is only found between quotation marks or backticks counts one less: such a text may be about it.
 *
 * It knows words, and no meaning. Whoever wants to can say the same in others, in another language, in letters that look alike, or in
 * small steps; and a text may show them and mean no harm. Use it to log, to ask twice, or to stop what is crude, beside what
 * holds: tools that can do little, approval, and results that are not trusted. The list changes. It takes linear time.
 */
export const injectionSignals = (
  text: string,
  extra: readonly InjectionPattern[] = [],
): readonly InjectionSignal[] => {
  const plain = cleaned(text);
  const lower = withoutMarks(plain.toLowerCase());
  const { decoding, obeying, roleMarkers, ...quotable } = signalPatterns;
  const namedWeight = weighed(plain, [namedPersona], 3);
  const isEncoded = encodedText.test(plain) && [decoding, obeying].every((it) => some(lower, it));
  return [
    { name: 'override', weight: weighed(lower, quotable.override, 3) },
    { name: 'promptRequest', weight: weighed(lower, quotable.promptRequest, 3) },
    { name: 'persona', weight: Math.max(weighed(lower, quotable.persona, 3), namedWeight) },
    { name: 'encodedOrders', weight: isEncoded ? 3 : 0 },
    { name: 'hiddenText', weight: hiddenText.test(text) ? 3 : 0 },
    { name: 'chatTokens', weight: weighed(lower, quotable.chatTokens, 2) },
    { name: 'hiddenCharacters', weight: hiddenCharacters.test(text) ? 2 : 0 },
    { name: 'roleMarkers', weight: some(lower, roleMarkers) ? 1 : 0 },
    ...extra.map(({ name, pattern, weight = 3 }) => ({
      name,
      weight: pattern.test(text) || pattern.test(plain) ? weight : 0,
    })),
  ].filter(({ weight }) => weight > 0);
};

/** Its weight, one less where all that is found is quoted, and none where nothing is. */
const weighed = (text: string, patterns: readonly RegExp[], weight: number): number => {
  let found = 0;
  for (const pattern of patterns) {
    for (const { 0: match, index } of text.matchAll(pattern)) {
      if (!isQuoted(text, index, index + match.length)) return weight;
      found = weight - 1;
    }
  }
  return found;
};

const isQuoted = (text: string, start: number, end: number): boolean =>
  opensQuote.test(text.slice(Math.max(0, start - 60), start)) &&
  closesQuote.test(text.slice(end, end + 200));

const opensQuote = /["“„«「『`‘][^"”“»」』`’]*$/;
const closesQuote = /["”“»」』`’]/;

/** Unlike `test`, a search remembers nothing. */
const some = (text: string, patterns: readonly RegExp[]): boolean =>
  patterns.some((pattern) => text.search(pattern) !== -1);
