import type { MillraceError } from 'millrace';

/** A request of the store to its thread. */
export interface Request {
  readonly id: number;
  /** The name of an operation. */
  readonly name: string;
  readonly given: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly failure: Failure };

/** Data: an error would lose its fields between threads. */
export type Failure =
  /** Another process writes. Nothing was changed. */
  | { readonly type: 'busy' }
  /** A result code of SQLite. */
  | { readonly type: 'sqlite'; readonly code: number }
  /** A code of the operating system, such as `EACCES`. */
  | { readonly type: 'system'; readonly code: string }
  /** The file was moved or deleted. */
  | { readonly type: 'moved' }
  /** The file belongs to another program. */
  | { readonly type: 'foreign' }
  | {
      readonly type: 'format';
      readonly part: string;
      readonly found: unknown;
      readonly read: number;
    }
  /** The file system does not support it. */
  | { readonly type: 'noSharedMemory' }
  | { readonly type: 'noDriver' }
  /** A value of the request cannot be copied to the thread. */
  | { readonly type: 'notPlain' }
  /** A `MillraceError` of a pure function that an operation uses. */
  | {
      readonly type: 'refused';
      readonly code: MillraceError['code'];
      readonly message: string;
      readonly retryable: boolean;
      readonly status: number | undefined;
      readonly userMessage: string | undefined;
    }
  /** Another error, by its name or code. */
  | { readonly type: 'other'; readonly name: string };
