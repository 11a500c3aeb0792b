import {
  checkOptions,
  defined,
  isDelay,
  isFlag,
  isFunction,
  isObject,
  isRecord,
  isText,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { MillraceError, type Tool } from 'millrace';
import type { PatternEngine } from 'millrace/schema';
import type {
  AuthProvider,
  CreateMessageRequestParams,
  CreateMessageResult,
  ElicitRequestFormParams,
  ElicitRequestURLParams,
  ElicitResult,
  OAuthClientProvider,
  Tool as ListedTool,
} from '@modelcontextprotocol/client';
import { isObservable, type Observable, type ObservableInput } from 'rxjs';

/** A server that runs as a child process and speaks over its standard input and output. */
export interface StdioServer {
  readonly command: string;
  readonly args?: readonly string[];
  /** Variables in addition to HOME, LOGNAME, PATH, SHELL, TERM and USER (and their like on Windows). No others are passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the directory of this process. */
  readonly cwd?: string;
  /** Where its standard error goes. Default: `ignore`. */
  readonly stderr?: 'ignore' | 'inherit';
}

/** A server at a URL that speaks Streamable HTTP. */
export interface HttpServer {
  readonly url: string | URL;
  /** Sent to the origin of `url` only. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Provides a bearer token, or performs OAuth with the help of the SDK. Its tokens and its client secret go only to
   * the `issuer` that they were stored with, and nowhere without one.
   */
  readonly authProvider?: AuthProvider | OAuthClientProvider;
  /**
   * Origins that may be asked beside that of `url`, such as `['https://login.example.com']` for an authorization
   * server. An address elsewhere ends the connection with the code `refused`. Default: none.
   */
  readonly origins?: readonly string[];
  /**
   * Sends each request, for example `guardedFetch()` of `@millrace/tools/web` if users choose the URL: it connects to
   * public addresses only. Default: the global `fetch`.
   */
  readonly fetch?: HttpFetch;
}

/** Sends one request, and returns redirects instead of following them. A part of the global `fetch`. */
export type HttpFetch = (
  url: string,
  request: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly signal?: AbortSignal;
    readonly redirect: 'manual';
  },
) => PromiseLike<{
  readonly status: number;
  readonly headers: Iterable<readonly [name: string, value: string]>;
  readonly body: ReadableStream<Uint8Array> | null;
}>;

/** A tool whose description or schema differs from the one that was first seen. */
export interface ToolChange {
  readonly server: string;
  /** The name, as the server spells it. */
  readonly tool: string;
  readonly before: ListedTool;
  readonly after: ListedTool;
}

/** Returns or emits true to use a tool as it is now. Until then it is not used. */
export type ChangeDecider = (change: ToolChange) => boolean | ObservableInput<boolean>;

/** Emits the answer to a form. The signal aborts when the server withdraws its question. */
export type Elicitor = (
  request: ElicitRequestFormParams,
  signal: AbortSignal,
) => ObservableInput<ElicitResult>;

/**
 * Shows a page of the server to the user, who may be asked for what must not pass through the client, such as a
 * password. Show its host, and open it only if the user agrees. Emits whether the user did; the page may still be open.
 */
export type UrlElicitor = (
  request: Pick<ElicitRequestURLParams, 'message' | 'url'>,
  signal: AbortSignal,
) => ObservableInput<boolean>;

/* eslint-disable @typescript-eslint/no-deprecated -- The protocol of 2026-07 deprecates sampling; servers still ask. */
/** Emits the message of a model. The signal aborts when the server withdraws its request. */
export type Sampler = (
  request: CreateMessageRequestParams,
  signal: AbortSignal,
) => ObservableInput<CreateMessageResult>;
/* eslint-enable @typescript-eslint/no-deprecated */

/** A directory or file that a server may work with. */
export interface Root {
  /** A file URL: `pathToFileURL(path)`. */
  readonly uri: string | URL;
  readonly name?: string;
}

export interface McpOptions {
  /** The name of the server, for you, for errors and for the prefix: letters, digits, `_` and `-`. */
  readonly name: string;
  /** Only these tools, as the server spells them. Default: all. */
  readonly include?: readonly string[] | undefined;
  /** Not these tools. Default: none. */
  readonly exclude?: readonly string[] | undefined;
  /** Precedes the name of each tool. Default: `name` and `_`. */
  readonly prefix?: string | undefined;
  /** Adds tools that list and read resources. Default: false. */
  readonly resources?: boolean | undefined;
  /** Adds tools that list and get prompts. Default: false. */
  readonly prompts?: boolean | undefined;
  /** The folders for the work of the server, sent to it now and after each change. It does not confine the server. Default: not sent. */
  // eslint-disable-next-line rxjs-x/finnish -- It may be a list.
  readonly roots?: readonly Root[] | Observable<readonly Root[]> | undefined;
  /** Announce to the server that the program shows pages of MCP Apps. They are in `details` of results. Default: false. */
  readonly apps?: boolean | undefined;
  /** Believe the hints `readOnlyHint` and `idempotentHint`: a resumed call may run these tools again. Default: false. */
  readonly trust?: boolean | undefined;
  /** The engine for patterns in schemas, such as `linearPatterns`. Default: patterns are not checked here. */
  readonly patterns?: PatternEngine | undefined;
  /** Edits each tool, for example to ask for approval. Default: unchanged. */
  readonly wrap?: ((tool: Tool, listed: ListedTool) => Tool) | undefined;
  /* eslint-disable rxjs-x/finnish -- Named as callbacks are. */
  /** Decides whether to use a tool whose definition changed. Default: a changed tool is not used. */
  readonly onChanged?: ChangeDecider | undefined;
  /** Answers a question of the server to the user. Default: such questions are refused. */
  readonly onElicit?: Elicitor | undefined;
  /** Asks the user to open a page of the server, with http or https. Default: such questions are refused. */
  readonly onElicitUrl?: UrlElicitor | undefined;
  /** Answers a model request of the server. Default: such requests are refused. */
  readonly onSample?: Sampler | undefined;
  /* eslint-enable rxjs-x/finnish */
  /** Called with each problem that costs no more than a tool or a connection. `mcp` also reports it as a `warning`. */
  readonly onWarning?: ((message: string) => void) | undefined;
  readonly timeouts?:
    | {
        /** Until the first list of tools, and for each later list, in milliseconds. Default: 30,000. */
        readonly connectMs?: number | undefined;
        /** For each run of a tool, in milliseconds. Default: `toolMs` of the call. */
        readonly toolMs?: number | undefined;
        /** Progress starts `toolMs` again, which is 60,000 by default then. Default: false. */
        readonly renewOnProgress?: boolean | undefined;
        /** With `renewOnProgress`, for each run of a tool in all, in milliseconds. Default: no limit. */
        readonly totalMs?: number | undefined;
        /**
         * A task of the server that takes longer suspends the call, in milliseconds; tools that can run as a task do so then. Default:
         * tasks are awaited, and only tools that require it run as one.
         */
        readonly suspendMs?: number | undefined;
      }
    | undefined;
  readonly reconnect?:
    | {
        /** Connections that may fail in a row before `mcpTools` errors. `mcp` never gives up. Default: 5. */
        readonly attempts?: number | undefined;
        /** The wait after the first failure, in milliseconds. It doubles each time. Default: 500. */
        readonly backoffMs?: number | undefined;
        /** The longest wait, in milliseconds. Default: 30,000. */
        readonly maxBackoffMs?: number | undefined;
      }
    | undefined;
  readonly limits?:
    | {
        /** Further tools are left out. Default: 128. */
        readonly tools?: number | undefined;
        /** Pages of a list; a longer list is an error. Default: 20. */
        readonly pages?: number | undefined;
        /** Characters of a description; the rest is cut off. Default: 4,000. */
        readonly description?: number | undefined;
        /** Characters of an input schema as JSON; a tool with a longer one is left out. Default: 20,000. */
        readonly schema?: number | undefined;
        /** Characters of a result, media included; the rest is cut off. Default: 1,000,000. */
        readonly result?: number | undefined;
        /** Bytes of one message; a longer one ends the connection. Default: 10,000,000. */
        readonly message?: number | undefined;
      }
    | undefined;
}

/** An MCP server: how to reach it, and what to accept from it. */
export type McpServer = McpOptions &
  (
    | { readonly stdio: StdioServer; readonly http?: undefined }
    | { readonly http: HttpServer; readonly stdio?: undefined }
  );

/** A server whose options are checked and complete. */
export type Server = McpServer & {
  readonly prefix: string;
  readonly timeouts: NonNullable<McpOptions['timeouts']> & { readonly connectMs: number };
  readonly reconnect: Readonly<Record<'attempts' | 'backoffMs' | 'maxBackoffMs', number>>;
  readonly limits: Readonly<
    Record<'tools' | 'pages' | 'description' | 'schema' | 'result' | 'message', number>
  >;
};

const limits = {
  tools: 128,
  pages: 20,
  description: 4_000,
  schema: 20_000,
  result: 1_000_000,
  message: 10_000_000,
};
const reconnect = { attempts: 5, backoffMs: 500, maxBackoffMs: 30_000 };
const timeouts = { connectMs: 30_000 };

/** Checks a server's options, and fills in the defaults. */
export const serverOf = (owner: string, given: McpServer): Server => {
  checkOptions(owner, given, rules, ['name']);
  if ((given.stdio === undefined) === (given.http === undefined)) {
    throw new MillraceError(
      'config',
      `${owner} needs either 'stdio' or 'http': how to reach the server '${given.name}'.`,
    );
  }
  return {
    ...given,
    prefix: given.prefix ?? `${given.name}_`,
    timeouts: { ...timeouts, ...defined(given.timeouts) },
    reconnect: { ...reconnect, ...defined(given.reconnect) },
    limits: { ...limits, ...defined(given.limits) },
  };
};

/** The wait before the next connection, in milliseconds. */
export const backOff = ({ reconnect: policy }: Server, failures: number): number =>
  Math.min(policy.backoffMs * 2 ** (failures - 1), policy.maxBackoffMs);

const safeName = /^[\w-]*$/;

const within = (inner: Readonly<Record<string, Rule>>, required: readonly string[] = []): Rule => [
  (value) => {
    checkOptions('mcp()', value, inner, required);
    return true;
  },
  'an object of options',
];

const texts: Rule = [
  (value) => Array.isArray(value) && value.every((it) => typeof it === 'string'),
  'a list of strings',
];
const variables: Rule = [
  (value) => isRecord(value) && Object.values(value).every((it) => typeof it === 'string'),
  'an object of strings',
];
const webAddress: Rule = [
  (value) => URL.canParse(String(value)) && /^https?:$/.test(new URL(String(value)).protocol),
  'a URL with http or https',
];
const origins: Rule = [
  (value) =>
    Array.isArray(value) &&
    value.every((it) => webAddress[0](it) && new URL(String(it)).origin === it),
  "a list of origins, such as ['https://login.example.com']",
];
const isRoot = (value: unknown): boolean => isRecord(value) && /^file:/i.test(String(value['uri']));
const whole = wholeNumber(1);

const rules: Readonly<Record<keyof McpOptions | 'stdio' | 'http', Rule>> = {
  name: [
    (value) => typeof value === 'string' && /^[\w-]{1,32}$/.test(value),
    '1 to 32 letters, digits, _ or -',
  ],
  stdio: within(
    {
      command: isText,
      args: texts,
      env: variables,
      cwd: isText,
      stderr: oneOf('ignore', 'inherit'),
    },
    ['command'],
  ),
  http: within(
    {
      url: webAddress,
      headers: variables,
      authProvider: isObject,
      origins,
      fetch: isFunction,
    },
    ['url'],
  ),
  include: texts,
  exclude: texts,
  prefix: [
    (value) => typeof value === 'string' && value.length <= 33 && safeName.test(value),
    'up to 33 letters, digits, _ or -',
  ],
  resources: isFlag,
  prompts: isFlag,
  roots: [
    (value) => isObservable(value) || (Array.isArray(value) && value.every(isRoot)),
    "a list of roots with a file URL, such as [{ uri: pathToFileURL('/work') }], or an Observable of lists",
  ],
  apps: isFlag,
  trust: isFlag,
  patterns: isFunction,
  wrap: isFunction,
  onChanged: isFunction,
  onElicit: isFunction,
  onElicitUrl: isFunction,
  onSample: isFunction,
  onWarning: isFunction,
  timeouts: within({
    connectMs: isDelay,
    toolMs: isDelay,
    renewOnProgress: isFlag,
    totalMs: isDelay,
    suspendMs: isDelay,
  }),
  reconnect: within({ attempts: whole, backoffMs: isDelay, maxBackoffMs: isDelay }),
  limits: within({
    tools: whole,
    pages: whole,
    description: whole,
    schema: whole,
    result: whole,
    message: whole,
  }),
};
