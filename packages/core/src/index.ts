export { type Agent, type AgentOptions, createAgent } from './agent.js';
export type { EventStream, OutputOf } from './call/callable.js';
export type { AnyRun, CallInfo, CallLabels, EndReasons, Reply, ToolRun } from './values/reply.js';
export type { CallOptions } from './call/call-options.js';
export { parallel, race, route, sequential } from './operators/compose.js';
export { createDemand, type Demand, type DemandGate, openDemand } from './flow/demand.js';
export { isMillraceError, MillraceError } from './values/errors.js';
export {
  type AgentEvent,
  type ChunkOf,
  type Envelope,
  type EventOf,
  type Events,
  type TypedEventOf,
  isEvent,
} from './events.js';
export { answerTool } from './models/answer-tool.js';
export { fallback, retry, timeouts } from './models/retry.js';
export { shortenOnOverflow } from './models/fit-messages.js';
export { createToolParts, type ToolParts } from './models/tool-parts.js';
export { output, outputOf, partialOutput$ } from './layers/output.js';
export { restoreAsyncContext } from './flow/async-context.js';
export { fromPull } from './flow/from-pull.js';
export type { Input, InputMessage } from './seams/input.js';
export type { Interceptor } from './seams/interceptor.js';
export { on, onCall, watch } from './seams/interceptor.js';
export { prepare } from './layers/interceptors/prepare.js';
export { type ContentChunk, type StopChunk, stopMessage } from './models/chunk-transform.js';
export type { Preparation } from './seams/preparation.js';
export { guardOutput, transformChunks } from './layers/interceptors/guard-output.js';
export { logEvents } from './layers/interceptors/log-events.js';
export {
  byCall,
  only,
  replies,
  text,
  textSoFar,
  toolRuns,
  usage$,
} from './operators/event-operators.js';
export { wrapAgent } from './operators/wrap-agent.js';
export { bounded, coalesceMap, sampleDeltas } from './operators/bounded.js';
export { fromReadableStream, toReadableStream } from './operators/readable-stream.js';
export type { Layer, Context, OutputLayer, Use } from './seams/layer.js';
export { conversation, history } from './memories/conversation.js';
export { strictHistory } from './memories/repair.js';
export type { Cell, Perform, Step, ToolStepResult } from './step.js';
export { cell, toolResultOf } from './step.js';
export type { StepForm } from './journal/step-forms.js';
export { inProcessMemory, type MemoryFactory } from './memories/in-process-memory.js';
export type { AppendOptions, LoadOptions, Memory, MemoryChange } from './values/memory.js';
export type { Entry, MessageTree, Place } from './values/message-tree.js';
export {
  type AssistantBlock,
  type AssistantMessage,
  type AudioBlock,
  type Block,
  type CacheMark,
  type Citation,
  type ContentBlock,
  type FileBlock,
  type Finish,
  type ImageBlock,
  type ImageDetail,
  type MediaSource,
  type Message,
  type ResultSource,
  type Suspends,
  type Suspension,
  textBlock,
  type TextBlock,
  textOf,
  type TextPhase,
  type ThinkingBlock,
  type ToolMessage,
  type ToolResultBlock,
  type ToolCallBlock,
  toolCallsOf,
  type UserMessage,
  type VendorBlock,
  type VendorData,
  type VendorFacts,
} from './values/message.js';
export type {
  Model,
  ModelChunk,
  ModelContext,
  ModelReport,
  ModelRequest,
  RequestOptions,
  ToolDeclaration,
} from './models/model.js';
export type { InputSchema, JsonSchema, Validation, Validator } from './values/schema.js';
export { tool, type ToolDefinition } from './tools/tool.js';
export { type ToolEmission, toolOutput, type ToolOutput } from './values/tool-output.js';
export { type ContextEntry, type ContextKey, contextKey } from './tools/context-key.js';
export type { Embedder } from './layers/search/meaning-index.js';
export { addTools, selectTools, type ToolSelector } from './layers/select-tools.js';
export { approval, requireApproval } from './layers/approval.js';
export { interruptOn } from './layers/interrupt-on.js';
export { acceptExtras, preset } from './tools/preset.js';
export { suspend, suspensionsIn, toolResults } from './memories/suspend.js';
export { toolGroup } from './tools/tool-group.js';
export { toolMethod, toolsOf } from './tools/tool-method.js';
export { transient } from './phases/run-tool.js';
export { addUsage, noUsage, type Usage } from './values/usage.js';
export type { ApprovalRequest, Approver, Verdict } from './layers/approval.js';
export type { LiveToolkit, Tool, ToolContext, ToolGroup } from './tools/types.js';
