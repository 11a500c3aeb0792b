import { MillraceError } from '@millrace/core';

/** How much of an answer is taken before it is given up with a `tooLarge` error, and its socket closed. */
export interface Caps {
  /** Characters of text and thinking. Default: 10,000,000. */
  readonly textLength: number;
  /** Characters of the arguments of one tool use. Default: 1,000,000. */
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
  textLength: 10_000_000,
  argumentLength: 1_000_000,
  toolUses: 128,
  depth: 100,
  eventLength: 32_000_000,
  errorBytes: 65_536,
};

/**
 * Fills up the caps that somebody sets. Throws a `MillraceError` (`config`) for one that there is not, or that is
 * no number above 0.
 */
export const capsOf = (set: Partial<Caps> = {}): Caps => {
  const given = Object.entries(set).filter(([, value]) => typeof value !== 'undefined');
  for (const [name, value] of given) {
    if (!Object.hasOwn(defaultCaps, name)) {
      const known = Object.keys(defaultCaps).join(', ');
      throw new MillraceError('config', `There is no cap '${name}'. The caps are: ${known}.`);
    }
    if (!(typeof value === 'number' && value > 0)) {
      throw new MillraceError('config', `The cap '${name}' must be a number above 0.`);
    }
  }
  return { ...defaultCaps, ...Object.fromEntries(given) };
};
