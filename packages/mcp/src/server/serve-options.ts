import { type Agent, type ContextEntry, MillraceError, type Tool, type Use } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { agentTool } from 'millrace/teams';
import {
  checkOptions,
  defined,
  isDelay,
  isFunction,
  isRecord,
  isText,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { localhostAllowedHostnames, localhostAllowedOrigins } from '@modelcontextprotocol/server';
import type { ToolAnnotations } from '@modelcontextprotocol/server';
import { isObservable, type Observable, type ObservableInput } from 'rxjs';
import type { Listed } from './lists.js';
import { checkPrompts, type McpPrompt } from './prompts.js';
import { checkResources, type McpResource, type McpResourceTemplate } from './resources.js';

/** An agent, which is one tool; tools; or lists of tools that change. */
export type Served = Agent | readonly Tool[] | Observable<readonly Tool[]>;

/**
 * Whether a request is admitted. `user` binds its session to that user, and is `metadata.user` of the calls. Limits
 * per client count by user, otherwise by token; all clients without a token are one.
 */
export type Access = boolean | { readonly user: string };

/** The description of a server, and how its tools run. */
export interface ServingOptions {
  /** The name of the server, and of the tool if it serves an agent. Default: the agent's name, or `millrace`. */
  readonly name?: string | undefined;
  /** The version that clients see. Default: `0.1.0`. */
  readonly version?: string | undefined;
  /** Explains to the client's model how to use the server. Default: none. */
  readonly instructions?: string | undefined;
  /** When to use the agent, for the client's model. Required for an agent, and for nothing else. */
  readonly description?: string | undefined;
  /** Hints for clients beside `idempotentHint`, and `destructiveHint` of tools that ask for approval. Default: none. */
  readonly annotations?: ((tool: Tool) => ToolAnnotations) | undefined;
  /** Layers around each run of a tool, such as `approval(approveByClient)`. Default: none. */
  readonly use?: Use | undefined;
  /** Data that clients read by URIs. Default: none. */
  // eslint-disable-next-line rxjs-x/finnish -- Often a plain list.
  readonly resources?: Listed<McpResource | McpResourceTemplate> | undefined;
  /**
   * Emits the URI of each resource whose content changed, for clients that subscribed to it; the same one up to twice in 100 ms.
   * Without it, clients cannot subscribe.
   */
  readonly resourceUpdates$?: Observable<string> | undefined;
  /** Prompts for the users of clients. Default: none. */
  // eslint-disable-next-line rxjs-x/finnish -- Often a plain list.
  readonly prompts?: Listed<McpPrompt> | undefined;
  /**
   * The secret, of at least 32 characters, that signs what clients of version 2026-07-28 bring back with an answer. Processes
   * that share a URL need the same. Default: random.
   */
  readonly stateKey?: string | undefined;
  /** Values of context keys for the tools. Default: none. */
  readonly context?: readonly ContextEntry[] | undefined;
  /**
   * Called with each error, its cause included. A client gets the error's `userMessage`, or the string that this
   * returns. Other return values and thrown errors are ignored.
   */
  readonly onError?: ((error: MillraceError) => unknown) | undefined;
  readonly timeouts?:
    | {
        /** For each run of a tool without its own `timeoutMs`, read, prompt and completion, in milliseconds. Default: 60,000. */
        readonly toolMs?: number | undefined;
        /** Until a session without an open request ends, in milliseconds. Default: 300,000. */
        readonly idleMs?: number | undefined;
      }
    | undefined;
  readonly limits?:
    | {
        /** Tool calls, reads, prompts and completions that run at a time, of all clients; further ones fail immediately. Default: 100. */
        readonly calls?: number | undefined;
        /** Of these, those of one client over HTTP. Default: a fifth of `calls`. */
        readonly callsPerClient?: number | undefined;
        /** Sessions, and streams that listen for changes, at a time over HTTP; further ones get the status 503. Default: 100. */
        readonly sessions?: number | undefined;
        /** Of these, those of one client; further ones get the status 429. Default: a fifth of `sessions`. */
        readonly sessionsPerClient?: number | undefined;
        /** Bytes of a message; a longer one gets the status 413, or ends the connection. Default: 4,194,304. */
        readonly message?: number | undefined;
        /** Characters of a result; the rest is cut off. A resource or prompt with more is an error. Default: 1,000,000. */
        readonly result?: number | undefined;
        /** Progress notifications for each call; further ones are dropped. Default: 1,000. */
        readonly progress?: number | undefined;
        /** Log messages for each call; further ones are dropped. Default: 1,000. */
        readonly logs?: number | undefined;
        /** Resources that one session subscribes to, or one stream listens for. Default: 100. */
        readonly subscriptions?: number | undefined;
        /** Bytes of notifications that a client leaves unread; then their stream over HTTP ends. Default: 1,048,576. */
        readonly unread?: number | undefined;
      }
    | undefined;
}

/** Who may send requests over HTTP. */
export interface HttpAccess {
  /** Host names in the header `Host`, without ports. Default: `localhost`, `127.0.0.1` and `[::1]`. */
  readonly allowedHosts?: readonly string[];
  /** Host names in the header `Origin`, which browsers send, without scheme and port. Default: those of `allowedHosts`. */
  readonly allowedOrigins?: readonly string[];
  /** Decides on the bearer token of each request; `undefined` without one. Default: everyone is admitted. */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly authorize?: (
    token: string | undefined,
    request: Request,
  ) => Access | ObservableInput<Access>;
}

/** Who sends a request. */
export interface HttpCaller {
  /** The user that `authorize` names. */
  readonly user?: string;
  /** The client for the limits. Undefined without `authorize`, because all clients look the same. */
  readonly client?: string;
}

/** Options that are checked and complete. */
export type Serving = Omit<ServingOptions, 'timeouts' | 'limits' | 'description'> &
  Required<Omit<HttpAccess, 'authorize'>> &
  Pick<HttpAccess, 'authorize'> & {
    readonly name: string;
    readonly version: string;
    // eslint-disable-next-line rxjs-x/finnish -- Often a plain list.
    readonly tools: Listed<Tool>;
    readonly timeouts: { readonly toolMs: number; readonly idleMs: number };
    readonly limits: Readonly<Record<keyof NonNullable<ServingOptions['limits']>, number>>;
  };

const limits = {
  calls: 100,
  sessions: 100,
  message: 4_194_304,
  result: 1_000_000,
  progress: 1_000,
  logs: 1_000,
  subscriptions: 100,
  unread: 1_048_576,
};
const timeouts = { toolMs: 60_000, idleMs: 300_000 };

/** Checks the options, and fills in the defaults. Throws a `config` error that names the fix. */
export const servingOf = (
  owner: string,
  served: Served,
  options: ServingOptions & HttpAccess,
): Serving => {
  const { description, ...given } = options;
  if (isList(given.resources)) checkResources(given.resources);
  if (isList(given.prompts)) checkPrompts(given.prompts);
  if (given.resourceUpdates$ !== undefined && given.resources === undefined) {
    throw misuse(`${owner}: 'resourceUpdates$' needs 'resources'.`);
  }
  const hosts = given.allowedHosts ?? localhostAllowedHostnames();
  return {
    ...defined(given),
    allowedHosts: hosts,
    allowedOrigins: given.allowedOrigins ?? given.allowedHosts ?? localhostAllowedOrigins(),
    ...toolsOf(owner, served, given.name, description),
    version: given.version ?? '0.1.0',
    timeouts: { ...timeouts, ...defined(given.timeouts) },
    limits: limitsOf(given.limits),
  };
};

const limitsOf = (given: ServingOptions['limits']): Serving['limits'] => {
  const all = { ...limits, ...defined(given) };
  return { callsPerClient: fifth(all.calls), sessionsPerClient: fifth(all.sessions), ...all };
};

const fifth = (all: number): number => Math.max(1, Math.floor(all / 5));

const misuse = (message: string): MillraceError => new MillraceError('config', message);

const toolsOf = (
  owner: string,
  served: Served,
  name: string | undefined,
  description: string | undefined,
): Pick<Serving, 'name' | 'tools'> => {
  if (isAgent(served)) {
    if (description === undefined) {
      throw misuse(`${owner} needs 'description' for an agent: when the client should ask it.`);
    }
    const tool = asTool(served, { name: name ?? served.name, description });
    return { name: name ?? served.name, tools: [tool] };
  }
  if (description !== undefined) {
    throw misuse(`${owner}: 'description' is for an agent. Tools have descriptions of their own.`);
  }
  // eslint-disable-next-line rxjs-x/finnish -- Often a plain list.
  if (isObservable(served)) return { name: name ?? 'millrace', tools: served };
  if (!isList(served)) {
    throw misuse(`${owner} serves an agent, a list of tools or an Observable of such lists.`);
  }
  const twice = served.find((tool, at) => served.findIndex((it) => it.name === tool.name) !== at);
  if (twice !== undefined) throw misuse(`${owner}: two tools are named '${twice.name}'.`);
  return { name: name ?? 'millrace', tools: served };
};

const isList = (given: unknown): given is readonly unknown[] => Array.isArray(given);

const isAgent = (served: Served): served is Agent => isRecord(served) && 'call$' in served;

const question = jsonSchema({
  type: 'object',
  properties: {
    question: {
      type: 'string',
      minLength: 1,
      description: 'The complete question or task: the agent does not see your conversation.',
    },
  },
  required: ['question'],
  additionalProperties: false,
});

/** An agent as a tool of clients: a question in, the answer out. A call is not idempotent. */
export const asTool = (
  agent: Agent,
  { name, description }: { readonly name: string; readonly description: string },
): Tool => ({
  ...agentTool(agent, { name, description, input: question, toPrompt: ({ question: it }) => it }),
  idempotent: false,
});

// ---------------------------------------------------------------- checks

export const within = (owner: string, inner: Readonly<Record<string, Rule>>): Rule => [
  (value) => {
    checkOptions(owner, value, inner);
    return true;
  },
  'an object of options',
];

const names: Rule = [
  (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
  'a list of host names',
];
const whole = wholeNumber(1);
const list: Rule = [
  (value) => Array.isArray(value) || isObservable(value),
  'a list, or an Observable of lists',
];

export const servingRules: Readonly<Record<keyof ServingOptions, Rule>> = {
  name: [
    (value) => typeof value === 'string' && /^[\w.-]{1,64}$/.test(value),
    '1 to 64 letters, digits, _, . or -',
  ],
  version: isText,
  instructions: isText,
  description: isText,
  annotations: isFunction,
  use: [Array.isArray, 'a list of layers'],
  resources: list,
  resourceUpdates$: [isObservable, 'an Observable of URIs'],
  prompts: list,
  stateKey: [
    (value) => typeof value === 'string' && value.length >= 32,
    'a string of at least 32 characters',
  ],
  context: [(value) => Array.isArray(value) && value.every(isRecord), 'a list of context entries'],
  onError: isFunction,
  timeouts: within("'timeouts'", { toolMs: isDelay, idleMs: isDelay }),
  limits: within("'limits'", {
    calls: whole,
    callsPerClient: whole,
    sessions: whole,
    sessionsPerClient: whole,
    message: whole,
    result: whole,
    progress: whole,
    logs: whole,
    subscriptions: whole,
    unread: whole,
  }),
};

export const accessRules: Readonly<Record<keyof HttpAccess, Rule>> = {
  allowedHosts: names,
  allowedOrigins: names,
  authorize: isFunction,
};
