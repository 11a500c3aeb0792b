// Deep agents: a plan, files, sub-agents with their own context, skills, and code in a sandbox.
export { deepAgent, type DeepAgentOptions, type SubAgent } from './deep-agent.js';
export { fileSystem, type FilesOf, type FileSystemOptions } from './file-layer.js';
export { checkedFiles } from './checked-files.js';
export { fileSizes } from './file-sizes.js';
export type { FileContent, FileSystem, Sandbox, SandboxResult } from './file-system.js';
export { filesInMemory, type FilesInMemoryOptions } from './files-in-memory.js';
export { type TaskAgent, taskTool } from './task-tool.js';
