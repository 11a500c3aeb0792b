import type { EventOf, MillraceError } from 'millrace';
import { isFunction, type Rule } from 'millrace/values';
import { noop } from 'rxjs';

/** Controls what clients see of errors. Messages and causes may contain secrets, so the default reveals neither. */
export interface MaskOptions {
  /**
   * Called with every error of a call, even one that occurs after the end of the stream. Return a string to send it to
   * the client instead of the error's `userMessage`; other return values and thrown errors are ignored.
   */
  readonly onError?: ((error: MillraceError) => unknown) | undefined;
  /** Returns the text for a failed tool. Default: `The tool failed.` */
  readonly onToolError?: ((event: EventOf<'postActing'>) => string) | undefined;
}

/** The error texts for clients. */
export interface Masks {
  error(error: MillraceError): string;
  toolError(event: EventOf<'postActing'>): string;
}

/** Uses the default if a hook throws or does not return a string. */
export const createMasks = ({ onError, onToolError }: MaskOptions): Masks => ({
  error: (error) => textFrom(() => onError?.(error)) ?? error.userMessage,
  toolError: (event) => textFrom(() => onToolError?.(event)) ?? 'The tool failed.',
});

const textFrom = (hook: () => unknown): string | undefined => {
  try {
    const text = hook();
    // An async hook cannot replace the text, and its rejection must not crash the process.
    Promise.resolve(text).catch(noop);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
};

export const maskRules: Readonly<Record<keyof MaskOptions, Rule>> = {
  onError: isFunction,
  onToolError: isFunction,
};
