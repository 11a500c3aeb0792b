import { EMPTY, from, type Observable } from 'rxjs';
import { hearContained } from './contained.js';
import { gather, oneValue } from './gather.js';
import { andThen, type Eventual } from './eventual.js';
import { isMillraceError, messageOf, MillraceError } from '../values/errors.js';

/** A stage that a value passes: it may be edited, delayed or vetoed by emitting nothing. */
export type Stage<T> = (value: T) => Eventual<T>;

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
  const fault = (why: string): MillraceError => interceptorError(name, why, rule);
  const read = (out: unknown): T => {
    if (isUsable(out)) return out;
    throw fault(`it emitted something that is not a ${what}`);
  };
  return (value) => {
    const veto = (): Observable<never> => {
      onVeto(value);
      return EMPTY;
    };
    const handle = (cause: unknown): T => {
      const error = isVerdict(cause) ? cause : interceptorError(name, cause);
      if (!failOpen) throw error;
      onPassedOver(value, error);
      return value;
    };
    const several = (): MillraceError => fault(`it emitted more than one ${what} for one event`);
    const one = oneValue<unknown, T>(read, several, veto);
    return gather(() => from(operate$(value)), one, { handle, listen: hearContained });
  };
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
