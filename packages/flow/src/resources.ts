import type { Model, Tool, ToolContext } from '@millrace/core';
import type { Retriever } from '@millrace/core/retrieval';

/** A function of the program: it may return a value, a Promise or an Observable; of the latter the last value counts. */
export type FlowFunction = (
  input: Readonly<Record<string, unknown>>,
  context: ToolContext,
) => unknown;

/** What components are made with. */
export interface Equipment {
  readonly resources: FlowResources;
  /** How many components of a graph run at once. */
  readonly concurrency: number;
}

/** What the program gives to a flow. A document names it, and can reach nothing else. */
export interface FlowResources {
  /** By the `llm_id` of components. */
  readonly models?: Readonly<Record<string, Model>>;
  /** For tool components, and for the `tools` of agents, by their names. */
  readonly tools?: readonly Tool[];
  /** By the `retriever_id` of components. */
  readonly retrievers?: Readonly<Record<string, Retriever>>;
  /** By the `function` of components. */
  readonly code?: Readonly<Record<string, FlowFunction>>;
  /** The tools of servers, by the ids of these. */
  readonly mcp?: Readonly<Record<string, readonly Tool[]>>;
}
