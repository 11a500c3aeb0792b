import type { Observable, ObservableInput } from 'rxjs';
import { catchError, defer, from, map, mergeMap, of, take, throwError, toArray } from 'rxjs';
import type { CallInfo } from '../../values/reply.js';
import { contained } from '../../flow/contained.js';
import { isMillraceError, MillraceError, misuse } from '../../values/errors.js';
import type { InputMessage } from '../../seams/input.js';
import { type Interceptor, prepare } from '../../seams/interceptor.js';
import { isRecord } from '../../values/json.js';
import { textOf } from '../../values/message.js';
import { checkOptions, isText, type Rule } from '../../values/options.js';
import { verdict as ends } from '../../flow/stage.js';

/** What a guard of inputs looks at. */
export interface GuardedInput {
  /** All text that users said in it: of one message as it stands, those of several with a blank line between them. */
  readonly text: string;
  /** All of it, media and messages of other roles too. */
  readonly input: readonly InputMessage[];
  readonly call: CallInfo;
}

/** How a guard is named, and what it tells users. There is no `failOpen`: a guard that fails lets nothing pass. */
export interface GuardOptions {
  /** What events and errors call it. Default: the name of the function that makes it. */
  readonly name?: string;
  /** The `userMessage` of the error: it is shown to users. Default: a sentence that gives no reason. */
  readonly userMessage?: string;
}

/**
 * Checks every input before anything else happens with it: what a call starts with, and messages that steer it later. The check returns, promises or emits one verdict; only `true` or `{ allowed: true }` lets the input pass. Otherwise, and if the check errors, is empty or returns anything else, the
 * call errors with `guardRejected`: no model is asked, and nothing is stored. An interrupt, a time-out or unsubscribing unsubscribes from the check. Each input is checked by itself, without the conversation; several guards are asked in order.
 */
export const guardInput = (
  check: (asked: GuardedInput) => GuardVerdict | ObservableInput<GuardVerdict>,
  options: GuardOptions = {},
): Interceptor => {
  if (typeof check !== 'function') {
    throw misuse(
      `guardInput() takes a function of the input that gives true, false or { allowed, reason }, not ${typeof check}.`,
    );
  }
  checkOptions('guardInput()', options, guardRules);
  const { name = 'guardInput', userMessage } = options;
  const guard = { name, userMessage };
  return prepare(
    mergeMap((asked) =>
      decision$(() =>
        check(
          Object.freeze({
            text: textsOf(asked.input).join('\n\n'),
            input: asked.input,
            call: asked.call,
          }),
        ),
      ).pipe(
        catchError((cause: unknown) => throwError(() => unchecked(guard, cause, 'input'))),
        map((decision) => {
          if (decision.allowed) return asked;
          throw refused(guard, decision, 'input');
        }),
      ),
    ),
    { name, priority: 0 },
  );
};

export const guardRules: Readonly<Record<keyof GuardOptions, Rule>> = {
  name: isText,
  userMessage: isText,
};

const textsOf = (input: readonly InputMessage[]): readonly string[] =>
  input.filter(({ role }) => role === 'user').map(textOf);

/** The ways in which what users said can be read: as it stands, and, of several messages, also as though nothing was between them. What is taken apart must not pass where the whole would not. */
export const readingsOf = ({
  text,
  input,
}: Pick<GuardedInput, 'text' | 'input'>): readonly string[] => {
  const texts = textsOf(input);
  return texts.length > 1 ? [text, texts.join('')] : texts;
};

/** What a guard says: yes or no, or why not. Whatever is not a plain yes is a no. */
export type GuardVerdict =
  | boolean
  | {
      readonly allowed: boolean;
      /** Why not, for logs: it goes into the message of the error, so do not quote what was said. */
      readonly reason?: string | undefined;
      /** What the user may read, instead of what the guard says to all. */
      readonly userMessage?: string | undefined;
      /** It will be allowed in so many milliseconds: the error is `retryable`. */
      readonly retryAfterMs?: number | undefined;
    };

export type Decision = Exclude<GuardVerdict, boolean>;

interface GuardInit {
  readonly name: string;
  readonly userMessage?: string | undefined;
}

/** Asks a check: it may return its verdict, promise it or emit it. Emits one decision, or errors where the check threw, or gave no verdict, two, or anything else. Leaving it leaves the check at once. */
export const decision$ = (
  ask: () => GuardVerdict | ObservableInput<GuardVerdict>,
): Observable<Decision> =>
  defer(() => verdicts(ask())).pipe(contained(), take(2), toArray(), map(onlyOne), map(toDecision));

export const refused = ({ name, userMessage }: GuardInit, decision: Decision, what: string) => {
  const { reason, retryAfterMs } = decision;
  const shown = decision.userMessage ?? userMessage;
  return ends(
    new MillraceError(
      'guardRejected',
      `The guard '${name}' refused the ${what}${reason === undefined ? '.' : `: ${reason.replace(/\.$/, '')}.`}`,
      {
        ...(shown === undefined ? {} : { userMessage: shown }),
        ...(retryAfterMs === undefined ? {} : { retryable: true, retryAfterMs }),
      },
    ),
  );
};

/** The error of a check that failed: nothing passes where nobody could look. What it threw may quote what was said, and is the cause only. */
export const unchecked = ({ name, userMessage }: GuardInit, cause: unknown, what: string) =>
  ends(
    isMillraceError(cause) && cause.code === 'guardRejected'
      ? cause
      : new MillraceError(
          'guardRejected',
          `The guard '${name}' could not check the ${what}, and so refused it: see the cause.`,
          {
            cause,
            // Who could not be asked may be asked again.
            retryable: !isMillraceError(cause) || cause.retryable,
            ...(userMessage === undefined ? {} : { userMessage }),
          },
        ),
  );

const verdicts = (given: GuardVerdict | ObservableInput<GuardVerdict>): Observable<unknown> =>
  isObservableInput(given) ? from(given) : of(given);

const isObservableInput = (given: unknown): given is ObservableInput<unknown> =>
  typeof given === 'object' &&
  given !== null &&
  !('allowed' in given) &&
  ('subscribe' in given ||
    'then' in given ||
    Symbol.iterator in given ||
    Symbol.asyncIterator in given ||
    Symbol.observable in given);

const onlyOne = ([verdict, ...more]: readonly unknown[]): unknown => {
  if (verdict !== undefined && more.length === 0) return verdict;
  throw noVerdict(more.length > 0 ? 'more than one verdict' : 'none');
};

const toDecision = (verdict: unknown): Decision => {
  if (typeof verdict === 'boolean') return { allowed: verdict };
  if (!isRecord(verdict)) throw noVerdict(`something else (${typeof verdict})`);
  const { allowed, reason, userMessage, retryAfterMs } = verdict;
  if (typeof allowed !== 'boolean') throw noVerdict("an object without 'allowed: true' or 'false'");
  const isWait = typeof retryAfterMs === 'number' && retryAfterMs >= 0;
  return {
    allowed,
    ...(typeof reason === 'string' && { reason }),
    ...(typeof userMessage === 'string' && { userMessage }),
    ...(isWait && { retryAfterMs }),
  };
};

const noVerdict = (given: string): MillraceError =>
  new MillraceError(
    'config',
    `A check of a guard must give one verdict, true, false or { allowed, reason }, and this one gave ${given}.`,
  );
