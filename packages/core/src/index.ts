export { type Agent, type AgentOptions, createAgent } from './agent.js';
export type { Callable, Flatten, OperatorOptions, OutputOf } from './callable.js';
export type { CallInfo } from './call-info.js';
export type { CallOptions } from './call-options.js';
export {
  type Composable,
  type Composables,
  type OutOf,
  parallel,
  race,
  route,
  type Route,
  sequential,
} from './compose/compose.js';
export { createDemand, type Demand, type DemandGate, openDemand } from './demand.js';
export {
  isMillraceError,
  MillraceError,
  type MillraceErrorCode,
  type MillraceErrorOptions,
} from './errors.js';
export {
  type AfterModel,
  type AgentEvent,
  type BeforeModel,
  type ChunkOf,
  type Envelope,
  type EventOf,
  type Events,
  type EventType,
  isEvent,
  type ModifiableEvent,
  type ModifiablePayload,
  type ModifiableType,
  type ReportedPayload,
  type StatePatch,
} from './events.js';
export { answerTool } from './models/answer-tool.js';
export { fallback, retry, type RetryOptions, timeouts } from './models/retry.js';
export { estimateTokens } from './fitting/estimate-tokens.js';
export { output, partialOutput$, type PartialOf, type PartialOutputOptions } from './output.js';
export { fromBatches, fromPull, type OpenPull } from './from-pull.js';
export type { Input, InputMessage } from './input.js';
export {
  type Interceptor,
  type InterceptorOptions,
  on,
  onCall,
  prepare,
  type Hook,
  transformChunks,
  watch,
} from './interceptor.js';
export {
  type ChunkTransform,
  type ContentChunk,
  type StopChunk,
  stopMessage,
} from './content-through.js';
export type { CallDefaults, Preparation, PreparedOptions } from './preparation.js';
export type { PhaseFactory } from './phase.js';
export { guardOutput, type GuardOutputOptions } from './interceptors/guard-output.js';
export {
  logEvents,
  type LogEventsOptions,
  type LogFields,
  type Logger,
} from './interceptors/log-events.js';
export type { Patterns } from './interceptors/patterns.js';
export { redact, type RedactOptions } from './interceptors/redact.js';
export {
  byCall,
  type CallsHeard,
  only,
  replies,
  text,
  textSoFar,
  toolRuns,
  usage$,
} from './streams/event-operators.js';
export {
  bounded,
  type BoundedOptions,
  coalesceMap,
  fromReadableStream,
  type ReadableStreamOptions,
  sampleDeltas,
  toReadableStream,
} from './streams/bounded.js';
export type { Answer, Layer, LayerContext, OutputLayer, Use } from './layer.js';
export type { Call } from './call/call.js';
export { conversation, history, strictHistory } from './memories/conversation.js';
export {
  type Cell,
  cell,
  type Cut,
  type Locals,
  type Perform,
  type Step,
  type StepForm,
  toolResultOf,
  type ToolStepResult,
} from './step.js';
export { inProcessMemory, type MemoryFactory } from './memories/in-process-memory.js';
export type { Memory, MemoryChange } from './memory.js';
export {
  type AssistantBlock,
  type AssistantMessage,
  type AudioBlock,
  type Block,
  type ContentBlock,
  type FileBlock,
  type ImageBlock,
  type MediaSource,
  type Message,
  textBlock,
  type TextBlock,
  textOf,
  type ThinkingBlock,
  type Suspended,
  type Suspension,
  type ToolMessage,
  type ToolResultBlock,
  type ToolUseBlock,
  toolUsesOf,
  type UserMessage,
} from './message.js';
export type { Finish } from './message.js';
export type { Malformed, Model, ModelChunk, ModelContext, ModelReport, ModelRequest, ModelTimeouts, RequestOptions, RetryBudget, ToolChoice, ToolDeclaration } from './model.js';
export type { LimitOptions, OnLimit, Timeouts } from './limits.js';
export type { EndReason, Reply, ToolRun } from './reply.js';
export type {
  Infer,
  InputSchema,
  JsonSchema,
  StandardSchema,
  Validation,
  Validator,
} from './schema.js';
export { tool, type ToolDefinition } from './tool.js';
export {
  type ToolEmission,
  toolOutput,
  type ToolOutput,
  type ToolOutputInit,
} from './tool-output.js';
export {
  type ContextEntry,
  type ContextKey,
  contextKey,
  type ContextValues,
} from './tools/context-key.js';
export type { Embedder } from './retrieval/meaning-index.js';
export {
  addTools,
  type SelectionRequest,
  selectTools,
  type ToolSelection,
  type ToolSelector,
} from './tools/select-tools.js';
export { approval, requireApproval } from './tools/approval.js';
export { interruptOn } from './interrupt-on.js';
export { acceptExtras, preset, type PresetOptions } from './tools/preset.js';
export { suspend, suspensionsIn, toolResults } from './tools/suspend.js';
export { toolGroup } from './tools/tool-group.js';
export { toolMethod, toolsOf } from './tools/tool-method.js';
export { transient } from './run-tool.js';
export type { Usage, UsageByPhase } from './usage.js';
export type { ApprovalRequest, Approver, Verdict } from './tools/approval.js';
export type {
  LiveToolkit,
  Tool,
  ToolContext,
  ToolEntry,
  ToolGroup,
  ToolGroupDefinition,
  ToolPolicy,
  ToolRetry,
} from './tools/types.js';
