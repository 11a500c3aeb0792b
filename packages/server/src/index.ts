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
  ToolUseData,
  UiMessageChunk,
  UiMessageChunk7,
} from './ai-sdk/ui-message-chunk.js';
export {
  approvalDesk,
  type ApprovalDesk,
  type ApprovalDeskOptions,
  type WaitingApproval,
} from './approvals/approval-desk.js';
export type { ApprovalKey } from './approvals/approval-keys.js';
export { approvalsHandler, type ApprovalsHandlerOptions } from './approvals/approvals-handler.js';
export { agUiHeaders, uiMessageStreamHeaders } from './headers.js';
export type { MaskOptions } from './masks.js';
export type { SourceData } from './parts/part.js';
export type { TicketOptions } from './parts/with-tickets.js';
export { agUiResponse, type OpenCall, uiMessageStreamResponse } from './responses.js';
export { type ServerSentEventsOptions, toServerSentEvents } from './to-server-sent-events.js';
