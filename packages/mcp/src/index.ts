export { mcp, type McpLayer, type McpStatus } from './mcp.js';
export type {
  ChangeDecider,
  Elicitor,
  HttpFetch,
  HttpServer,
  McpOptions,
  McpServer,
  Sampler,
  StdioServer,
  ToolChange,
  UrlElicitor,
} from './server-options.js';
export { mcpTools } from './tool-list.js';
