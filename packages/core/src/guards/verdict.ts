import { defer, from, map, type Observable, type ObservableInput, of, take, toArray } from 'rxjs';
import { contained } from '../contained.js';
import { isMillraceError, MillraceError } from '../errors.js';
import { isRecord } from '../json.js';
import { verdict as ends } from '../verdict.js';

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

export interface GuardInit {
  readonly name: string;
  readonly userMessage?: string | undefined;
}

/**
 * Asks a check: it may return its verdict, promise it or emit it. Emits one decision, or errors where the check threw, or
 * gave no verdict, two, or anything else. Leaving it leaves the check at once.
 */
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

/** From outside: it may be anything. */
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
