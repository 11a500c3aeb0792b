import type { Model, Tool, ToolContext } from '@millrace/core';
import type { Retriever } from '@millrace/core/retrieval';

/** A function of the program. It returns a value, a Promise or an Observable (the last value counts). */
export type FlowFunction = (
  input: Readonly<Record<string, unknown>>,
  context: ToolContext,
) => unknown;

export interface CompileOptions {
  readonly resources: FlowResources;
  /** The maximum number of components of a graph that run concurrently. */
  readonly concurrency: number;
}

/** The resources of a flow. A document refers to them by ID, and cannot access anything else. */
export interface FlowResources {
  /** Models by `llm_id`. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Tools for tool components and for the `tools` of agents, which refer to them by name. */
  readonly tools?: readonly Tool[];
  /** Retrievers by `retriever_id`. */
  readonly retrievers?: Readonly<Record<string, Retriever>>;
  /** Functions by `function`. */
  readonly code?: Readonly<Record<string, FlowFunction>>;
  /** The tools of MCP servers, by server ID. */
  readonly mcp?: Readonly<Record<string, readonly Tool[]>>;
}
