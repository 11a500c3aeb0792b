export { flowAgent, type FlowOptions } from './flow-agent.js';
export { problemsIn } from './problems-in.js';
export type { FlowProblem } from './problem.js';
export type { FlowFunction, FlowResources } from './resources.js';
export { toMermaid } from './to-mermaid.js';
export type {
  AgentParams,
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
  IterateParams,
  MessageParams,
  OnError,
  RetrievalParams,
  SwitchCase,
  SwitchCondition,
  SwitchOperator,
  SwitchParams,
  TemplateText,
  ToolParams,
} from './document.js';
