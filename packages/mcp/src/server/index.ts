export { approveByClient } from './call-tool.js';
export { type McpHandler, mcpHandler } from './mcp-handler.js';
export { type Listening, serveMcp, type ServeMcpOptions } from './serve-mcp.js';
export {
  type Access,
  asTool,
  type HttpAccess,
  type Served,
  type ServingOptions,
} from './serve-options.js';
