export { fileCalls, type FileCallsOptions } from './files/file-calls.js';
