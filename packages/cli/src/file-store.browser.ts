import { MillraceError } from '@millrace/core';
import type * as node from './file-store.js';

/** Replaces `file-store.ts` for the condition `browser`: bundlers set it for other platforms than Node. */
export const openFiles: typeof node.openFiles = () => {
  throw new MillraceError('config', 'openFiles() needs the file system of Node.');
};
