import type { MillraceError } from './errors.js';

const verdicts = new WeakSet<object>();

/** Marks an error with which an interceptor ends its call on purpose: it keeps its code, instead of becoming an `interceptor` error. */
export const verdict = (error: MillraceError): MillraceError => {
  verdicts.add(error);
  return error;
};

/** Tells whether an error is such a verdict, once: for whoever hears of it further out, it is a failure like any other. */
export const isVerdict = (cause: unknown): cause is MillraceError =>
  typeof cause === 'object' && cause !== null && verdicts.delete(cause);
