import { MillraceError } from './errors.js';

/** Describes that stored data has another format version than the only one that this release reads. */
export const otherFormat = (found: unknown, read: number): string =>
  `has ${versionOf(found)}, but this release of Millrace reads only format version ${read}`;

const versionOf = (found: unknown): string => {
  if (found === undefined) return 'no format version';
  return typeof found === 'number' && Number.isSafeInteger(found)
    ? `format version ${found}`
    : 'an invalid format version';
};

/** Throws `invalidState` unless stored data has the format version that this release reads. `what` begins the sentence. */
export const checkFormat = (what: string, found: unknown, read: number): void => {
  if (found === read) return;
  throw new MillraceError(
    'invalidState',
    `${what} ${otherFormat(found, read)}. Open it with the release that wrote it, or delete it.`,
  );
};
