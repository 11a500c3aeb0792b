import type { MillraceError } from 'millrace';

/** Prints an error as one line of the program's log. A malformed request is the mistake of its client, and is left out. */
export const printError = (error: MillraceError, callId?: string): void => {
  if (callId === undefined && error.code === 'invalidRequest') return;
  const where = callId === undefined ? 'The server' : `Call ${callId}`;
  console.error(oneLine(`${where}: ${error.message} (${error.code})`));
};

/** Without what could begin another line, or control a terminal: a message may contain what a vendor or a tool has sent. */
const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_C}]+/gu, ' ');
