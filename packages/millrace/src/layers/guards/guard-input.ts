import type { Observable, ObservableInput } from 'rxjs';
import { catchError, concat, defer, last, map, mergeMap, take, throwError, toArray } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { contained } from '../../flow/contained.js';
import {
  isConfigError,
  isMillraceError,
  MillraceError,
  misuse,
  revised,
} from '../../values/errors.js';
import type { InputMessage } from '../../seams/input.js';
import type { Interceptor } from '../../seams/interceptor.js';
import { prepare } from '../interceptors/prepare.js';
import { isRecord } from '../../values/json.js';
import { isBesideQuestion, textOf } from '../../values/message.js';
import { checkOptions, isFlag, isText, type Rule } from '../../values/options.js';
import { given$ } from '../../tools/tool.js';
import { verdict as ends } from '../../flow/stage.js';

export interface GuardedInput {
  /** Text of all user messages, separated by blank lines. In a team, without what other agents have said since. */
  readonly text: string;
  readonly input: readonly InputMessage[];
  readonly call: CallInfo;
}

/** Options of all guards. There is no `failOpen`: a guard that fails rejects. */
export interface GuardOptions {
  /** Name in events and errors. Default: the name of the guard function. */
  readonly name?: string | undefined;
  /** `userMessage` of the error, shown to users. Default: a sentence without a reason. */
  readonly userMessage?: string | undefined;
}

export interface InputGuardOptions extends GuardOptions {
  /**
   * In a list of messages as input, also checks each earlier question, as if it were asked now. Default: false for
   * `guardInput`, true for the guards of this package that read text.
   */
  readonly history?: boolean | undefined;
}

/**
 * Checks all input before anything else happens: the input that starts a call, and messages that steer it later. The
 * check returns, promises or emits one verdict; only `true` or `{ allowed: true }` accepts the input. Otherwise, and if
 * the check errors or is empty, the call errors with `guardRejected`: no model is asked and nothing is stored. Anything
 * else than one verdict, such as `undefined`, is a `config` error. An interrupt, a timeout or unsubscribing cancels the
 * check. Each input is checked by itself, without the conversation, but see `history`; several guards run in order. The
 * error of a check that failed is `retryable`, unless its cause is not.
 */
export const guardInput = (
  check: (asked: GuardedInput) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: InputGuardOptions = {},
): Interceptor => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardInput() takes a function that returns true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardInput()', options, inputGuardRules);
  const { name = 'guardInput', userMessage, history = false } = options;
  const guard = { name, userMessage };
  const passed$ = (input: readonly InputMessage[], call: CallInfo, what: string) =>
    decision$(() =>
      check(Object.freeze({ text: textsOf({ input, call }).join('\n\n'), input, call })),
    ).pipe(
      catchError((cause: unknown) => throwError(() => failedCheck(guard, cause, what))),
      map((decision) => {
        if (!decision.allowed) throw rejection(guard, decision, what);
        return true;
      }),
    );
  return prepare(
    mergeMap((asked) => {
      const { input, call } = asked;
      const now$ = passed$(input, call, 'input');
      const earlier = history ? questionsIn(asked.history) : [];
      const all$ =
        earlier.length === 0
          ? now$
          : concat(...earlier.map((question) => passed$(question, call, 'history')), now$);
      return all$.pipe(
        last(),
        map(() => asked),
      );
    }),
    { name, priority: 0 },
  );
};

export const guardRules: Readonly<Record<keyof GuardOptions, Rule>> = {
  name: isText,
  userMessage: isText,
};

/** Messages of the user in a row are one question. */
const questionsIn = (messages: readonly InputMessage[]): readonly (readonly InputMessage[])[] => {
  const questions: InputMessage[][] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role !== 'user') continue;
    if (messages[index - 1]?.role === 'user') questions.at(-1)?.push(message);
    else questions.push([message]);
  }
  return questions;
};

export const inputGuardRules: Readonly<Record<keyof InputGuardOptions, Rule>> = {
  ...guardRules,
  history: isFlag,
};

/** In a team, what other agents have said since is no part of the question. */
const textsOf = ({ input, call }: Pick<GuardedInput, 'input' | 'call'>): readonly string[] =>
  input
    .filter((it) => it.role === 'user' && (call.parentId === undefined || !isBesideQuestion(it)))
    .map(textOf);

/** The user text and, for several messages, also joined without separators: splitting must not evade a guard. */
export const readingsOf = ({ text, ...asked }: GuardedInput): readonly string[] => {
  const texts = textsOf(asked);
  return texts.length > 1 ? [text, texts.join('')] : texts;
};

/** The verdict of a guard. Anything but an explicit `true` rejects. */
export type GuardVerdict =
  | boolean
  | {
      readonly allowed: boolean;
      /** The reason, for logs. It becomes part of the error message, so do not quote user text. */
      readonly reason?: string | undefined;
      /** Shown to the user instead of the guard's own `userMessage`. */
      readonly userMessage?: string | undefined;
      /** Milliseconds until the input will be accepted: makes the error `retryable`. */
      readonly retryAfterMs?: number | undefined;
    };

export type Decision = Exclude<GuardVerdict, boolean>;

interface GuardInit {
  readonly name: string;
  readonly userMessage?: string | undefined;
}

/** Runs a check. Emits one decision; errors if the check fails or is empty, and with `config` at anything else than one verdict. */
export const decision$ = (
  check: () => GuardVerdict | ObservableInput<GuardVerdict>,
): Observable<Decision> =>
  defer(() => given$(check(), isDecision)).pipe(contained(), take(2), toArray(), map(toDecision));

const isDecision = (given: unknown): boolean => isRecord(given) && 'allowed' in given;

export const rejection = ({ name, userMessage }: GuardInit, decision: Decision, what: string) => {
  const { reason, retryAfterMs } = decision;
  const shown = decision.userMessage ?? userMessage;
  return ends(
    new MillraceError(
      'guardRejected',
      `The guard '${name}' rejected the ${what}${reason === undefined ? '.' : `: ${reason.replace(/\.$/, '')}.`}`,
      {
        ...(shown === undefined ? {} : { userMessage: shown }),
        ...(retryAfterMs === undefined ? {} : { retryable: true, retryAfterMs }),
      },
    ),
  );
};

/** The error of a check that failed. Its cause may quote user text, so it is not part of the message. */
export const failedCheck = ({ name, userMessage }: GuardInit, cause: unknown, what: string) => {
  if (isConfigError(cause))
    return ends(revised(cause, { message: `The guard '${name}': ${cause.message}`, userMessage }));
  return ends(
    isMillraceError(cause) && cause.code === 'guardRejected'
      ? cause
      : new MillraceError(
          'guardRejected',
          `The guard '${name}' could not check the ${what} and rejected it: see the cause.`,
          {
            cause,
            retryable: !isMillraceError(cause) || cause.retryable,
            ...(userMessage === undefined ? {} : { userMessage }),
          },
        ),
  );
};

const toDecision = (given: readonly unknown[]): Decision => {
  if (given.length === 0) throw new Error('The check completed without a verdict.');
  if (given.length > 1) throw badVerdict('more than one verdict');
  const [verdict] = given;
  if (typeof verdict === 'boolean') return { allowed: verdict };
  if (!isRecord(verdict)) throw badVerdict(typeof verdict);
  const { allowed, reason, userMessage, retryAfterMs } = verdict;
  if (typeof allowed !== 'boolean')
    throw badVerdict("an object without 'allowed: true' or 'false'");
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0;
  return {
    allowed,
    ...(typeof reason === 'string' && { reason }),
    ...(typeof userMessage === 'string' && { userMessage }),
    ...(isWait && { retryAfterMs }),
  };
};

const badVerdict = (given: string): MillraceError =>
  misuse(
    `Its check must return or emit one verdict (true, false or { allowed, reason }), not ${given}.`,
  );
