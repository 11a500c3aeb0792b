// Contracts of file systems and sandboxes.
export {
  type Check,
  fileSystemContract,
  type FileSystemContractOptions,
} from './file-system-contract.js';
export { sandboxContract, type SandboxPrograms } from './sandbox-contract.js';
