import type { ToolCall } from './tool-call.js';

/** One step of a conversation, whatever its wire is. */
export type Said =
  | { readonly role: 'user' }
  | { readonly role: 'assistant'; readonly uses: readonly ToolCall[] }
  | { readonly role: 'tool'; readonly results: readonly ToolResult[] };

/** What a tool has said. */
export interface ToolResult {
  readonly id: string;
  readonly text: string;
}
