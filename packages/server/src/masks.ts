import type { EventOf, MillraceError } from '@millrace/core';
import { isFunction, type Rule } from '@millrace/core/adapter';

/** What a reader is told of what went wrong. Messages and causes may hold secrets: by default they stay here. */
export interface MaskOptions {
  /** Says what went wrong with a call. Default: the error's `userMessage`. */
  readonly onError?: (error: MillraceError) => string;
  /** Says what went wrong with a tool. Default: `The tool failed.` */
  readonly onToolError?: (event: EventOf<'postActing'>) => string;
}

/** The words for what went wrong. */
export interface Masks {
  error(error: MillraceError): string;
  toolError(event: EventOf<'postActing'>): string;
}

/** Makes them. A function that throws, or gives no text, says what would be said without it. */
export const createMasks = ({ onError, onToolError }: MaskOptions): Masks => ({
  error: (error) => said(() => onError?.(error)) ?? error.userMessage,
  toolError: (event) => said(() => onToolError?.(event)) ?? 'The tool failed.',
});

const said = (say: () => unknown): string | undefined => {
  try {
    const text = say();
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
