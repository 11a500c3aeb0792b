// Agents: create one, call it, and read its reply.
export { type Agent, createAgent } from './agent.js';
export { type AgentOptions } from './call/agent-options.js';
export type { CallOptions } from './call/call-options.js';
export type { EventStream, OutputOf } from './call/callable.js';
export { wrapAgent } from './operators/wrap-agent.js';
export type { Input, InputMessage } from './seams/input.js';
export type { AnyRun, CallInfo, CallLabels, EndReasons, Reply, ToolRun } from './values/reply.js';
export { addUsage, noUsage, type Usage } from './values/usage.js';

// Errors: one class, whose `code` says what failed.
export { isMillraceError, MillraceError } from './values/errors.js';

// Tools: what the model may call, with typed input, in groups, with values from the caller, for now or for later.
export { addTools, selectTools, type ToolSelector } from './layers/select-tools.js';
export { suspend, suspensionsIn, toolResults } from './memories/suspend.js';
export { transient } from './phases/run-tool.js';
export { type ContextEntry, type ContextKey, contextKey } from './tools/context-key.js';
export { acceptExtras, preset } from './tools/preset.js';
export { tool, type ToolDefinition } from './tools/tool.js';
export { toolGroup } from './tools/tool-group.js';
export { toolMethod, toolsOf } from './tools/tool-method.js';
export type { LiveToolkit, Tool, ToolContext, ToolGroup } from './tools/types.js';
export type { InputSchema, JsonSchema, Validation, Validator } from './values/schema.js';
export { type ToolEmission, toolOutput, type ToolOutput } from './values/tool-output.js';

// Approval: a person or a function decides on a tool call before it runs.
export {
  approval,
  type ApprovalRequest,
  type Approver,
  requireApproval,
  type Verdict,
} from './layers/approval.js';

// Structured output: a reply of the form that a schema describes.
export { output, outputOf, partialOutput$ } from './layers/output.js';

// Models: the port that a provider implements, and wrappers that retry, fall back and shorten requests.
export type { Embedder } from './layers/retrieval/meaning-index.js';
export { answerTool } from './models/answer-tool.js';
export { shortenOnOverflow } from './models/fit-messages.js';
export type {
  Model,
  ModelChunk,
  ModelContext,
  ModelReport,
  ModelRequest,
  RequestOptions,
  ToolDeclaration,
} from './models/model.js';
export { aroundModel, hasContent } from './models/around-model.js';
export { fallback, retry, timeouts } from './models/retry.js';
export { createToolParts, type ToolParts } from './models/tool-parts.js';

// Events: what a call emits while it runs, and operators that read the stream.
export {
  type AgentEvent,
  type ChunkOf,
  type Envelope,
  type EventOf,
  type Events,
  isEvent,
  type TypedEventOf,
} from './events.js';
export {
  byCall,
  only,
  replies,
  text,
  textSoFar,
  toolRuns,
  usage$,
} from './operators/event-operators.js';

// Interceptors: operators that edit, veto or watch one type of event, the input, or a message while it streams.
export { guardOutput, transformChunks } from './layers/interceptors/guard-output.js';
export { logEvents } from './layers/interceptors/log-events.js';
export { prepare } from './layers/interceptors/prepare.js';
export { userMessages } from './layers/interceptors/user-messages.js';
export { type ContentChunk, type StopChunk, stopMessage } from './models/chunk-transform.js';
export { type Interceptor, on, onCall, watch } from './seams/interceptor.js';
export type { Preparation } from './seams/preparation.js';

// Layers: middleware around calls, steps and models; `millrace/call` and `millrace/phases` have more for authors.
export { interruptOn } from './layers/interrupt-on.js';
export type { Context, Layer, OutputLayer, Use } from './seams/layer.js';
export {
  type Cell,
  cell,
  type Perform,
  type Step,
  type ToolStepResult,
  toolResultOf,
} from './step.js';
export type { StepForm } from './journal/step-forms.js';

// Composition: agents as one agent, in a row, side by side, or chosen for each input.
export { parallel, race, route, sequential } from './operators/compose.js';

// Flow control: demand from a slow consumer to the source, bounded buffers, and streams of other libraries.
export { restoreAsyncContext } from './flow/async-context.js';
export { createDemand, type Demand, type DemandGate, openDemand } from './flow/demand.js';
export { fromPull } from './flow/from-pull.js';
export { bounded, coalesceMap, sampleDeltas } from './operators/bounded.js';
export { fromReadableStream, toReadableStream } from './operators/readable-stream.js';

// Memory: the messages of earlier calls, from the caller or a store, as a line or a tree.
export { conversation, history } from './memories/conversation.js';
export { inProcessMemory, type MemoryFactory } from './memories/in-process-memory.js';
export { strictHistory } from './memories/repair.js';
export type { AppendOptions, LoadOptions, Memory, MemoryChange } from './values/memory.js';
export type { Entry, MessageTree, Place } from './values/message-tree.js';

// Messages: what users, models and tools say, in blocks of content.
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
  type ToolCallBlock,
  toolCallsOf,
  type ToolMessage,
  type ToolResultBlock,
  type UserMessage,
  type VendorBlock,
  type VendorData,
  type VendorFacts,
} from './values/message.js';
