import type { Given } from './lists.js';
import type { McpRequest } from './mcp-client.js';

/**
 * Suggests values for an argument: all possible ones, or a function of the
 * input and the arguments that are set already. Clients get up to 100.
 */
export type McpCompletion =
  readonly string[] | ((value: string, request: McpCompletionRequest) => Given<readonly string[]>);

/** A request to complete an argument, which cannot ask the client. */
export interface McpCompletionRequest extends Omit<McpRequest, 'client'> {
  /** The other arguments, as far as the client sent them. */
  readonly arguments: Readonly<Record<string, string>>;
}
