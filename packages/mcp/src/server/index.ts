export { approveByClient } from './call-tool.js';
export type { McpCompletion, McpCompletionRequest } from './completion.js';
export {
  type McpClient,
  mcpClient,
  type McpLogLevel,
  type McpRoot,
  type McpForm,
  type McpFormAnswer,
  type McpPage,
  type McpRequest,
} from './mcp-client.js';
export type {
  McpSample,
  McpSampleContent,
  McpSampleRequest,
  McpSampleToolCall,
  McpSampleToolResult,
} from './sampling.js';
export { type McpHandler, mcpHandler } from './mcp-handler.js';
export { type Listening, serveMcp, type ServeMcpOptions } from './serve-mcp.js';
export type { McpPrompt, McpPromptArgument, McpPromptMessage } from './prompts.js';
export type {
  McpResource,
  McpResourceContent,
  McpResourcePart,
  McpResourceTemplate,
} from './resources.js';
export {
  type Access,
  asTool,
  type HttpAccess,
  type Served,
  type ServingOptions,
} from './serve-options.js';
