import { checkOptions, defined, type Rule } from '@millrace/core/adapter';

/** How much of an answer is taken before it is given up with a `tooLarge` error, and its socket closed. */
export interface Caps {
  /** Characters of text and thinking. Default: 1,000,000. */
  readonly textLength: number;
  /** Characters of one tool use: its arguments, name and id. Default: 1,000,000. */
  readonly argumentLength: number;
  /** Tool uses of one message. Default: 128. */
  readonly toolUses: number;
  /** Levels of nesting in the arguments of a tool use. Default: 100. */
  readonly depth: number;
  /** Characters of one event, or of an answer that comes whole. Default: 32,000,000. */
  readonly eventLength: number;
  /** Bytes of an error's body that are read. Default: 65,536. */
  readonly errorBytes: number;
}

/** The caps, where nobody says otherwise. */
export const defaultCaps: Caps = {
  textLength: 1_000_000,
  argumentLength: 1_000_000,
  toolUses: 128,
  depth: 100,
  eventLength: 32_000_000,
  errorBytes: 65_536,
};

const count: Rule = [(value) => typeof value === 'number' && value > 0, 'a number above 0'];

const rules: Readonly<Record<keyof Caps, Rule>> = {
  textLength: count,
  argumentLength: count,
  toolUses: count,
  depth: count,
  eventLength: count,
  errorBytes: count,
};

/**
 * Fills up the caps that somebody sets. Throws a `MillraceError` (`config`) for one that there is not, or that is
 * no number above 0.
 */
export const capsOf = (set: Partial<Caps> = {}): Caps => {
  checkOptions(`'caps'`, set, rules);
  return { ...defaultCaps, ...defined(set) };
};
