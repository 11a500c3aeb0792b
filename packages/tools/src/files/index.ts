// Tools for the files of one directory, and its files for other packages.
export type { FileApprover, FileChangeRequest } from './change-files.js';
export {
  type ConfinedEntry,
  type ConfinedFiles,
  confinedFiles,
  type ConfinedFilesOptions,
} from './confined-files.js';
export { fileTools, type FileToolsOptions } from './file-tools.js';
