import type { CallInfo } from 'millrace';
import type {} from 'millrace/sessions';
import { filesInMemory } from './files-in-memory.js';
import type { FileSystem } from './file-system.js';

/** How many sessions, and calls without one, have files. A call that runs keeps its own. */
const maxKept = 100;

/** Creates files in this process for each session, or for each root call without one. A call that is resumed has its files again. */
export const filesBySession = (): ((root: CallInfo) => FileSystem) => {
  const kept = new Map<string, FileSystem>();
  return ({ sessionId, callId }) => {
    const owner = sessionId === undefined ? `call ${callId}` : `session ${sessionId}`;
    const files = kept.get(owner) ?? filesInMemory();
    // The first one of a map was added first.
    kept.delete(owner);
    kept.set(owner, files);
    for (const oldest of [...kept.keys()].slice(0, -maxKept)) kept.delete(oldest);
    return files;
  };
};
