import { MillraceError } from '../errors.js';

/** The error of a save that does not follow what is there. */
export const sessionConflict = (
  sessionId: string,
  expected: number | undefined,
  found: number | undefined,
): MillraceError =>
  new MillraceError(
    'conflict',
    `The session '${sessionId}' was to be saved after ${versioned(expected)}, and the store has ${versioned(found)}. Somebody else has saved or removed it: open it again.`,
  );

const versioned = (version: number | undefined): string =>
  version === undefined ? 'no state' : `version ${version}`;
