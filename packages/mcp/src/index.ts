export type { McpPages, McpResource } from './content.js';
export { mcp, type McpLayer, type McpStatus } from './mcp.js';
export type { Completion, CompletionRequest, McpRequests } from './programs.js';
export type {
  ChangeDecider,
  Elicitor,
  HttpFetch,
  HttpServer,
  McpOptions,
  McpServer,
  Root,
  Sampler,
  StdioServer,
  ToolChange,
  UrlElicitor,
} from './server-options.js';
export { mcpTools, type ToolPage } from './tool-list.js';
