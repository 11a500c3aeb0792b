import { callOperations } from './call-operations.js';
import { conversationOperations } from './conversation-operations.js';
import { documentOperations } from './document-operations.js';
import { memoryOperations } from './memory-operations.js';
import { read } from './operation.js';
import { sessionOperations } from './session-operations.js';

export const operations = {
  ...callOperations,
  ...conversationOperations,
  ...sessionOperations,
  ...memoryOperations,
  ...documentOperations,
  /** A number that changes with every commit of another connection: https://sqlite.org/pragma.html#pragma_data_version */
  dataVersion: read((database) => Number(database.get('pragma data_version')?.['data_version'])),
};

export type Operations = typeof operations;
