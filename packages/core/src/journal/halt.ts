import { isMillraceError, type MillraceError } from '../errors.js';

const halts = new WeakSet<object>();

/** Marks an error by which a journal stops a call: it is the call's, and not of the tool that it comes through. */
export const halting = (error: MillraceError): MillraceError => {
  halts.add(error);
  return error;
};

/** Tells whether an error ends a call because its agent is to come to rest: what is under way beside it may end first. */
export const isRest = (error: unknown): error is MillraceError =>
  isHalt(error) && isMillraceError(error) && error.code === 'aborted';

/** Tells whether an error stops the call, whatever it comes through. */
export const isHalt = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && halts.has(error);
