// Agents from JSON documents: checked, run and drawn.
export { flowAgent, type FlowOptions } from './flow-agent.js';
export { problemsIn } from './problems-in.js';
export type { FlowProblem } from './problem.js';
export type { ComponentStatus } from './scope.js';
export type {
  AskHuman,
  FlowFunction,
  FlowHttp,
  FlowRequest,
  FlowResources,
  FlowResponse,
  HumanRequest,
} from './resources.js';
export { FlowError } from './flow-error.js';
export type { FlowState } from './flow-state.js';
export { flowStates, livePicture, type LivePictureOptions } from './live-picture.js';
export { toMermaid } from './to-mermaid.js';
export type {
  AgentParams,
  Assignment,
  CategorizeParams,
  CodeParams,
  ComponentName,
  ComponentOf,
  FlowCategory,
  FlowComponent,
  FlowComponents,
  FlowDocument,
  FlowParams,
  FlowPrompt,
  FlowRetry,
  FlowVariable,
  HttpMethod,
  HttpParams,
  HumanField,
  HumanParams,
  IterateParams,
  LoopParams,
  MessageParams,
  OnError,
  RetrievalParams,
  SetParams,
  SwitchCase,
  SwitchCondition,
  SwitchOperator,
  SwitchParams,
  TemplateText,
  ToolParams,
  VariableType,
} from './document.js';
