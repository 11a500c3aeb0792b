import { checkOptions, defined, isFunction } from 'millrace/values';
import { type CallStoreOptions, createCallStore, isSeal } from 'millrace/journal';
import { asyncScheduler } from 'rxjs';
import { createClosing } from '../closing.js';
import type { Store } from '../store.js';
import { checkDirectory } from './file-system.js';
import { memoryIn } from './file-memory.js';
import { sessionsIn } from './file-sessions.js';
import { partsOf } from './file-work.js';
import { callsIn, type FileCallsOptions, fileRules } from './file-calls.js';

/** Options of `openFiles`. */
export interface FilesOptions extends FileCallsOptions, CallStoreOptions {}

/** Opens a store of plain files in a directory. Several processes on one machine can share it. */
export const openFiles = (directory: string, options: FilesOptions = {}): Store => {
  checkDirectory('openFiles()', directory);
  checkOptions('openFiles()', options, { ...fileRules, events: isFunction, seal: isSeal });
  const { events, seal, ...own } = options;
  const { scheduler = asyncScheduler } = own;
  const closing = createClosing();
  const part = partsOf(directory);
  const calls = closing.calls(callsIn(part('calls'), own));
  return {
    calls: createCallStore(calls, defined({ events, seal, scheduler: own.scheduler })),
    memory: closing.memory(memoryIn(part('conversations'))),
    sessions: closing.sessions(sessionsIn(part('sessions'), () => scheduler.now())),
    close$: closing.close$,
  };
};
