export { type AgUiInput, inputOfAgUi } from './ag-ui/input-of-ag-ui.js';
export { type AgUiOptions, toAgUi } from './ag-ui/to-ag-ui.js';
export { inputOfUiMessages, type UiMessagesInput } from './ai-sdk/input-of-ui-messages.js';
export { toUiMessageStream, type UiMessageStreamOptions } from './ai-sdk/to-ui-message-stream.js';
export type {
  AgentData,
  AgentProgress,
  AiSdkVersion,
  ApprovalData,
  CommonUiMessageChunk,
  MillraceData,
  MillraceDataChunk,
  PartMetadata,
  ReplyMetadata,
  ToolCallData,
  UiMessageChunk,
  UiMessageChunk7,
} from './ai-sdk/ui-message-chunk.js';
export type { MaskOptions } from './masks.js';
export type { SourceData } from './parts/part.js';
export type { ApprovalTokenOptions } from './parts/with-approval-tokens.js';
export {
  agUiHeaders,
  agUiResponse,
  type OpenCall,
  uiMessageStreamHeaders,
  uiMessageStreamResponse,
} from './responses.js';
export { type ServerSentEventsOptions, toServerSentEvents } from './to-server-sent-events.js';
export type { ForeignPart, PartOptions } from './inbound.js';
