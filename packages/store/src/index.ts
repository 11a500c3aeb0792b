export { fileCalls, type FileCallsOptions } from './files/file-calls.js';
export { makeDirectory } from './files/make-directory.js';
export { type FilesOptions, openFiles } from './files/open-files.js';
export type { Store } from './store.js';
