import { join } from 'node:path';
import { checkOptions, defined, isFunction } from '@millrace/core/adapter';
import { type CallStoreOptions, createCallStore } from '@millrace/core/journal';
import { createClosing } from '../closing.js';
import type { Store } from '../store.js';
import { checkDirectory } from './failure.js';
import { fileMemory } from './file-memory.js';
import { fileSessions } from './file-sessions.js';
import { fileCalls, type FileCallsOptions, fileRules } from './file-calls.js';

/** What a store in files is told. */
export interface FilesOptions extends FileCallsOptions, CallStoreOptions {}

/** Opens a store in a directory: plain files, of which several processes of one machine may use the same. */
export const openFiles = (directory: string, options: FilesOptions = {}): Store => {
  checkDirectory('openFiles()', directory);
  checkOptions('openFiles()', options, { ...fileRules, events: isFunction });
  const { events, ...own } = options;
  const closing = createClosing();
  const calls = closing.calls(fileCalls(join(directory, 'calls'), own));
  return {
    calls: createCallStore(calls, defined({ events, scheduler: own.scheduler })),
    memory: closing.memory(fileMemory(join(directory, 'conversations'))),
    sessions: closing.sessions(fileSessions(join(directory, 'sessions'))),
    close$: closing.close$,
  };
};
