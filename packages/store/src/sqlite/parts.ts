import { conversationTables } from './conversation-statements.js';
import { documentTables } from './document-operations.js';
import { memoryTables } from './memory-operations.js';
import { sessionTables } from './session-operations.js';
import { callTables, type TablesOfPart } from './tables.js';

/** All parts, made together when a database is opened. */
export const parts: readonly TablesOfPart[] = [
  callTables,
  conversationTables,
  sessionTables,
  memoryTables,
  documentTables,
];
