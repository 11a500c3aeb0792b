import type { Span } from './words.js';

/** A value for a parameter, and the words that gave it. */
export interface Value extends Span {
  readonly value: string | number | boolean;
  /** Hardly any other parameter could have been meant: arithmetic, a file's path, an address. */
  readonly telling: boolean;
  /** What else the same words may mean. */
  readonly others?: readonly string[];
  /** It is not known before an earlier result is. */
  readonly waits?: boolean;
}
