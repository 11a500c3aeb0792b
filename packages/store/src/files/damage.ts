import { MillraceError } from '@millrace/core';

/** The error of a line that is no whole one, though others come behind it. */
export const damaged = (path: string, line: number): MillraceError =>
  new MillraceError(
    'invalidState',
    `Line ${line} of ${path} is not as it was written: the file was damaged or edited. What stands before it can be read. ` +
      'Restore the file from a backup, or delete that line and all behind it to go on from there.',
  );

/** The error of records that are gone. */
export const lacking = (path: string, position: number): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} does not go on with record ${position}: a file before it is gone or was cut. ` +
      'Restore the directory from a backup, or delete this file and those behind it to go on from there.',
  );

/** The error of a file of a form that is not known here. */
export const laterFormat = (path: string, format: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} is of the format ${String(format)}, which this @millrace/store does not know. Install a newer @millrace/store, or give another directory.`,
  );
