import { join } from 'node:path';
import { EMPTY } from 'rxjs';
import type { Store } from '../store.js';
import { fileMemory } from './file-memory.js';
import { fileCalls, type FileCallsOptions } from './file-calls.js';

/** Opens a store in a directory: plain files, of which several processes of one machine may use the same. */
export const openFiles = (directory: string, options: FileCallsOptions = {}): Store => ({
  calls: fileCalls(join(directory, 'calls'), options),
  memory: fileMemory(join(directory, 'conversations')),
  close$: () => EMPTY,
});
