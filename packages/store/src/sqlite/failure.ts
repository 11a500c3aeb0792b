import type { MillraceError } from 'millrace';
import type { Failure } from './messages.js';
import { fieldOf } from './field-of.js';
import { sqliteCode } from './sqlite-driver.js';

/** A failure that has a type already. */
export class KnownFailure extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.type);
    this.failure = failure;
  }
}

/** The result codes SQLITE_BUSY and SQLITE_LOCKED, in the lowest byte. */
export const isBusy = (error: unknown): boolean => [5, 6].includes((sqliteCode(error) ?? 0) & 255);

export const failureOf = (error: unknown): Failure => {
  if (error instanceof KnownFailure) return error.failure;
  if (isBusy(error)) return { type: 'busy' };
  const sqlite = sqliteCode(error);
  if (sqlite !== undefined) return { type: 'sqlite', code: sqlite };
  if (isRefusal(error)) {
    const { code, message, retryable, status, userMessage } = error;
    return { type: 'refused', code, message, retryable, status, userMessage };
  }
  const code = fieldOf(error, 'code');
  if (typeof code === 'string' && fieldOf(error, 'syscall') !== undefined) {
    return { type: 'system', code };
  }
  // Not its message, which may contain values.
  return { type: 'other', name: String(code ?? fieldOf(error, 'name')) };
};

const isRefusal = (error: unknown): error is MillraceError =>
  fieldOf(error, 'name') === 'MillraceError';
