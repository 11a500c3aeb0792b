// Files of a deep agent on disk.
export { filesOnDisk, type FilesOnDiskOptions } from './files-on-disk.js';
