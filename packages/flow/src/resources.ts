import type { Model, Tool, ToolContext } from 'millrace';
import type { Retriever } from 'millrace/retrieval';
import type { FlowVariable, HumanField } from './document.js';

/** A function of the program. It returns a value, a Promise or an Observable (the last value counts). */
export type FlowFunction = (
  input: Readonly<Record<string, unknown>>,
  context: ToolContext,
) => unknown;

/** A response of `fetch`, as far as an HTTP component reads it. */
export interface FlowResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
}

/** The request of an HTTP component. */
export interface FlowRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Redirects are returned: the component checks each URL. */
  readonly redirect: 'manual';
  readonly signal: AbortSignal;
}

/** Sends the requests of HTTP components. */
export interface FlowHttp {
  /**
   * Sends one request, like the global `fetch`. It should only connect to public addresses, as `guardedFetch` of
   * `@millrace/tools/web` does: a component can check the addresses in URLs, but not those that host names resolve to.
   */
  readonly fetch: (url: string, request: FlowRequest) => PromiseLike<FlowResponse>;
  /** Whether a URL may have a loopback, private or link-local address. Default: never. */
  readonly isPrivateAllowed?: (url: URL) => boolean;
}

/** A question to a person. */
export interface HumanRequest {
  /** The ID of the component. */
  readonly component: string;
  readonly message: string;
  readonly choices?: readonly string[];
  readonly fields?: Readonly<Record<string, HumanField>>;
  /** Why the last answer was invalid. */
  readonly problem?: string;
}

/** Asks a person, and returns the answer, a Promise or an Observable of it (the first value counts). */
export type AskHuman = (request: HumanRequest, context: ToolContext) => unknown;

export interface CompileOptions {
  readonly resources: FlowResources;
  /** The types of the variables. */
  readonly variables: Readonly<Record<string, FlowVariable>>;
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
  /** Sends the requests of HTTP components. */
  readonly http?: FlowHttp;
  /** The values of `{{secret.NAME}}`. They are never part of events, errors, outputs and pictures. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Asks a person. Default: the call is suspended. */
  readonly human?: AskHuman;
}
