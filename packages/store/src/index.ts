export { fileCalls, type FileCallsOptions } from './files/file-calls.js';
export { type FilesOptions, openFiles } from './files/open-files.js';
export type { Store } from './store.js';
