import { MillraceError } from 'millrace';

/** The error for a broken line that is followed by intact ones, which rules out a torn write. */
export const damaged = (path: string, line: number): MillraceError =>
  new MillraceError(
    'invalidState',
    `Line ${line} of ${path} fails its checksum: the file was damaged or edited. The lines before it can be read. ` +
      'Restore the file from a backup, or delete that line and all that follow to continue from there.',
  );

export const missingRecord = (path: string, position: number): MillraceError =>
  new MillraceError(
    'invalidState',
    `${path} does not continue with record ${position}: an earlier file is missing or was truncated. ` +
      'Restore the directory from a backup, or delete this file and all later ones to continue from there.',
  );
