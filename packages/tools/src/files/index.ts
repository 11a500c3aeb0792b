// Tools for the files of one directory.
export type { FileApprover, FileChangeRequest } from './change-files.js';
export { fileTools, type FileToolsOptions } from './file-tools.js';
