import { catchError, concatMap, defer, EMPTY, type Observable, of, take, toArray } from 'rxjs';
import { contained } from './contained.js';
import { andThen, type Eventual } from './eventual.js';
import { isMillraceError, messageOf, MillraceError } from '../values/errors.js';

/** A stage that a value passes: it may be edited, delayed or vetoed by emitting nothing. */
export type Stage<T> = (value: T) => Observable<T>;

interface StageInit<T> {
  readonly name: string;
  readonly what: string;
  readonly failOpen: boolean;
  /** The foreign operator: it should emit one value and complete, or only complete. */
  readonly operate$: (value: T) => Observable<unknown>;
  readonly isUsable: (value: unknown) => value is T;
  readonly onVeto: (value: T) => void;
  /** Called with an error that is ignored. */
  readonly onPassedOver: (value: T, error: MillraceError) => void;
}

/** Creates a stage that checks that a foreign operator emits up to one value. */
export const createStage = <T>(init: StageInit<T>): Stage<T> => {
  const { name, what, failOpen, operate$, isUsable, onVeto, onPassedOver } = init;
  const rule = ` It must emit one ${what} for each it receives, or none to veto it.`;
  const onlyOne = ([first, ...more]: readonly unknown[]): T => {
    if (more.length > 0)
      throw interceptorError(name, `it emitted more than one ${what} for one event`, rule);
    if (isUsable(first)) return first;
    throw interceptorError(name, `it emitted something that is not a ${what}`, rule);
  };
  return (value) =>
    defer(() => operate$(value)).pipe(
      contained(),
      take(2),
      toArray(),
      concatMap((out) => {
        if (out.length > 0) return of(onlyOne(out));
        onVeto(value);
        return EMPTY;
      }),
      catchError((cause: unknown) => {
        const error = isVerdict(cause) ? cause : interceptorError(name, cause);
        if (!failOpen) throw error;
        onPassedOver(value, error);
        return of(value);
      }),
    );
};

export const passThrough = <T>(value: T, stages: readonly Stage<T>[]): Eventual<T> =>
  stages.reduce<Eventual<T>>(andThen, value);

/** The error of an interceptor that failed or broke the `rule`. */
export const interceptorError = (name: string, cause: unknown, rule = ''): MillraceError =>
  isMillraceError(cause) && cause.code === 'interceptor'
    ? cause
    : new MillraceError(
        'interceptor',
        `The interceptor ${name} failed: ${messageOf(cause).replace(/\.$/, '')}.${rule}`,
        { cause },
      );

const verdicts = new WeakSet<object>();

/** Marks an error with which an interceptor ends its call on purpose: it keeps its code. */
export const verdict = (error: MillraceError): MillraceError => {
  verdicts.add(error);
  return error;
};

/** Whether an error is a verdict. True once: further out it is an ordinary failure. */
const isVerdict = (cause: unknown): cause is MillraceError =>
  typeof cause === 'object' && cause !== null && verdicts.delete(cause);
