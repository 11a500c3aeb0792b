import type { EventOf, MillraceError } from '@millrace/core';
import { isFunction, type Rule } from '@millrace/core/adapter';
import { noop } from 'rxjs';

/** What happens with errors. Their messages and causes may hold secrets: by default the client gets neither. */
export interface MaskOptions {
  /**
   * Called with every error of a call, also one that comes after the stream's own end. Return a string to show the client that instead of
   * the error's `userMessage`; anything else changes nothing. What it throws is ignored.
   */
  readonly onError?: (error: MillraceError) => unknown;
  /** Says what went wrong with a tool. Default: `The tool failed.` */
  readonly onToolError?: (event: EventOf<'postActing'>) => string;
}

/** The words for what went wrong. */
export interface Masks {
  error(error: MillraceError): string;
  toolError(event: EventOf<'postActing'>): string;
}

/** Makes them. A function that throws or returns no string leaves the default. */
export const createMasks = ({ onError, onToolError }: MaskOptions): Masks => ({
  error: (error) => said(() => onError?.(error)) ?? error.userMessage,
  toolError: (event) => said(() => onToolError?.(event)) ?? 'The tool failed.',
});

const said = (say: () => unknown): string | undefined => {
  try {
    const text = say();
    // An async hook reports, and says nothing; that it fails must not end the process.
    Promise.resolve(text).catch(noop);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
};

/** What these options may be. */
export const maskRules: Readonly<Record<keyof MaskOptions, Rule>> = {
  onError: isFunction,
  onToolError: isFunction,
};
