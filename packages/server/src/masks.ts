import type { EventOf, MillraceError } from 'millrace';
import { defined, isFunction, type Rule } from 'millrace/values';
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
  /**
   * Returns the reason of a denied tool call for the client. Default: the reason of a user, such as of an approval queue. What a program has
   * written for the model is not shown.
   */
  readonly onDenial?: ((denial: Denial) => string | undefined) | undefined;
}

/** A tool call that was denied. */
export interface Denial {
  readonly toolName: string;
  /** Why, in the words of the approver. */
  readonly reason: string;
  /** A person has decided, and not a program. */
  readonly by?: 'user';
}

/** The error texts for clients. */
export interface Masks {
  error(error: MillraceError): string;
  toolError(event: EventOf<'postActing'>): string;
  /** `{ reason }`, or nothing. */
  denial(denied: Partial<Denial> & Pick<Denial, 'toolName'>): { readonly reason?: string };
}

/** Uses the default if a hook throws or does not return a string. */
export const createMasks = ({ onError, onToolError, onDenial = ofUser }: MaskOptions): Masks => ({
  error: (error) => textFrom(() => onError?.(error)) ?? error.userMessage,
  toolError: (event) => textFrom(() => onToolError?.(event)) ?? 'The tool failed.',
  denial: ({ toolName, reason, by }) =>
    reason === undefined
      ? {}
      : defined({ reason: textFrom(() => onDenial({ toolName, reason, ...defined({ by }) })) }),
});

const ofUser = ({ reason, by }: Denial): string | undefined => (by === 'user' ? reason : undefined);

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
  onDenial: isFunction,
};
