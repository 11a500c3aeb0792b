import { type Agent, MillraceError } from 'millrace';
import type { CallStore } from 'millrace/journal';
import type { SessionStore } from 'millrace/sessions';
import {
  checkOptions,
  defined,
  having,
  isDelay,
  isFunction,
  isRecord,
  numberFrom,
  oneOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import { firstValueFrom, lastValueFrom, noop, type Observable } from 'rxjs';
import type { ApprovalQueue } from '../approvals/approval-queue.js';
import type { UserLimits } from '../limits/index.js';
import { type MaskOptions, maskRules } from '../masks.js';
import { type PartOptions, partRules } from '../inbound.js';
import type { TitleOf } from './collection.js';
import { createConversations } from './conversations.js';
import { callOptionsLayer, type ForRequest } from './for-request.js';
import { type Authenticator, refused } from './guard.js';
import type { PlacesOptions } from './places.js';
import { createProcessStore } from './process-store.js';
import { type ChatProtocol, isPath, type ServerOfRoutes } from './protocol.js';
import { type AccessEntry, createRoutes } from './routes.js';
import type { OnDisconnect } from './runs.js';

/** Options of `chatServer`. */
export interface ChatServerOptions
  extends
    Pick<MaskOptions, 'onToolError' | 'onDenial'>,
    Pick<PartOptions, 'convertPart'>,
    ForRequest,
    PlacesOptions {
  /**
   * Where conversations and calls are kept, such as `openFiles(directory)` of `@millrace/store`: they then outlast the
   * process, and calls that it left are resumed. Close it after the server. Default: in this process only.
   */
  readonly store?: { readonly calls: CallStore; readonly sessions: SessionStore } | undefined;
  /**
   * Authenticates a request: returns or emits the id of its user, whose conversations no one else sees, or
   * `undefined` to refuse it (401). Calls have it as `metadata.userId`. Default: everybody is the same user, and only
   * `hosts` of this machine are served.
   */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly user?: Authenticator | undefined;
  /** The path that the routes for the AI SDK and for approvals begin with. Default: `/api`. */
  readonly path?: string | undefined;
  /** Further protocols, each with routes of its own, such as `agUi()` of `@millrace/server/ag-ui`. Default: none. */
  readonly protocols?: readonly ChatProtocol[] | undefined;
  /** Host names that requests may be made to, without ports. Default: `localhost` and its addresses; any, if there is a `user`. */
  readonly hosts?: readonly string[] | undefined;
  /** Origins of other sites whose pages may use the server, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[] | undefined;
  /** The fate of a call whose last client has gone. Default: `continue`. */
  readonly onDisconnect?: OnDisconnect | undefined;
  /** The major version of the AI SDK in the clients. Default: 6. */
  readonly aiSdk?: 6 | 7 | undefined;
  /** The queue of approvals: clients get tokens, and decide at `/approvals`. Default: none. */
  readonly approvals?: ApprovalQueue | undefined;
  /** The maximum size of a request, in bytes. Default: 4,000,000. */
  readonly maxBytes?: number | undefined;
  /** The maximum number of calls that run or wait; another one is refused (503). Default: 1,000. */
  readonly maxCalls?: number | undefined;
  /** The limits of each user, such as `userLimits()` of `@millrace/server/limits` (429). Default: none. */
  readonly limits?: UserLimits | undefined;
  /** Silence after which a stream sends a comment, so proxies keep it open, in milliseconds. Default: 15,000. */
  readonly heartbeatMs?: number | undefined;
  /**
   * For a message while an approval or a tool of the client waits: `cancel` what waits, with an error result that names the message, or `refuse` the
   * message (409). Default: `cancel`.
   */
  readonly onSuspended?: 'cancel' | 'refuse' | undefined;
  /** Removes ended calls from the store this long after their end, in milliseconds; conversations stay. Default: a day; 5 minutes without a store. */
  readonly keepCallsMs?: number | undefined;
  /**
   * Without a `store`: up to how many bytes, about, this process keeps of conversations and their calls. Above, conversations that were used least
   * recently and have no running call are removed, as by `DELETE /api/chat/{id}`. Default: 256,000,000.
   */
  readonly keepBytes?: number | undefined;
  /**
   * Makes the title of a conversation after its first answer, such as with a model: returns it, a Promise, or an Observable of it.
   * Default: the first words of its first question.
   */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly title?: TitleOf | undefined;
  /**
   * Called with each error, once: of a call, with its id, even if it has no client; of the store; of a refused request
   * if the server is to blame or the request is malformed; and with a warning if a part of a message is left out. Default:
   * none; `serve` prints a line to stderr, except for malformed requests. Clients only get the `userMessage`.
   */
  readonly onError?: ((error: MillraceError, callId?: string) => void) | undefined;
  /** Called at the end of each response. */
  readonly onAccess?: ((entry: AccessEntry) => void) | undefined;
}

/** Serves an agent to chat clients. */
export interface ChatServer {
  /** Answers a request. Never rejects: failures are responses with a JSON `{ error, code }`. */
  readonly respond: (request: Request) => Promise<Response>;
  /** Whether the server has a route for the path and the method of a request. Let others answer the rest. */
  readonly handles: (request: Pick<Request, 'method' | 'url'>) => boolean;
  /**
   * Refuses new calls, waits for the running ones to finish their step, and completes. With a store, they are resumed
   * by the next server. Cold.
   */
  readonly close$: (options?: { readonly timeoutMs?: number | undefined }) => Observable<never>;
  /** The Promise form of `close$`. Starts immediately. */
  readonly close: (options?: { readonly timeoutMs?: number | undefined }) => Promise<void>;
}

/**
 * Serves an agent to clients of the AI SDK (`/api/chat`), and of further `protocols`, on any runtime with `Request` and
 * `Response`. Calls run on their own, one after another in each conversation: clients may leave, reload and join again,
 * and with a store the process may end. Resumes the calls of the store that have stopped.
 */
export const chatServer = (agent: Agent, options: ChatServerOptions = {}): ChatServer => {
  checkServer('chatServer()', agent, options);
  const given = defined(options);
  const { onError, onAccess } = given;
  const report = (error: MillraceError, callId?: string): void => {
    quietly(() => onError?.(error, callId));
  };
  const protocols = given.protocols ?? [];
  const served: ServerOfRoutes = {
    agent,
    approvals: given.approvals,
    masks: defined({ onToolError: given.onToolError, onDenial: given.onDenial }),
    parts: {
      ...defined({ convertPart: given.convertPart }),
      onWarning: (warning) => {
        report(refused(400, warning));
      },
    },
  };
  const layers = [
    ...protocols.flatMap(({ use }) => use?.(served) ?? []),
    ...(given.callOptions === undefined ? [] : [callOptionsLayer(given.callOptions)]),
  ];
  const { store, keepBytes = 256_000_000, ...settings } = given;
  const kept = createProcessStore();
  const conversations = createConversations(layers.length === 0 ? agent : agent.with(...layers), {
    onDisconnect: 'continue',
    maxCalls: 1_000,
    keepCallsMs: store === undefined ? 300_000 : 86_400_000,
    store: store ?? kept,
    ...(store === undefined && { room: { kept, maxBytes: keepBytes } }),
    ...settings,
    report,
  });
  const { path = '/api' } = given;
  const { respond$, handles } = createRoutes(conversations, {
    origins: [],
    aiSdk: 6,
    maxBytes: 4_000_000,
    heartbeatMs: 15_000,
    ...given,
    served,
    path: path.replace(/\/+$/u, ''),
    protocols,
    hosts:
      given.hosts?.map((host) => host.toLowerCase()) ??
      (given.user === undefined ? thisMachine : undefined),
    report,
    log: (entry) => {
      quietly(() => onAccess?.(entry));
    },
  });
  const close$: ChatServer['close$'] = ({ timeoutMs } = {}) => conversations.close$(timeoutMs);
  return {
    respond: (request) => firstValueFrom(respond$(request)),
    handles,
    close$,
    close: (closing) => lastValueFrom(close$(closing), { defaultValue: undefined }),
  };
};

export const checkServer = (
  place: string,
  agent: unknown,
  options: Pick<ChatServerOptions, 'store' | 'keepBytes'>,
): void => {
  checkOptions(place, { agent }, { agent: having('with', 'an agent') }, ['agent']);
  checkOptions(place, options, rules);
  const { store, keepBytes } = options;
  if (store === undefined || keepBytes === undefined) return;
  throw new MillraceError('config', `${place}: 'keepBytes' is for a server without a 'store'.`);
};

const thisMachine = ['localhost', '127.0.0.1', '[::1]'];

/** A callback of the program that throws or rejects must not stop the server. */
const quietly = (call: () => unknown): void => {
  try {
    Promise.resolve(call()).catch(noop);
  } catch {
    // There is no one to report the error to.
  }
};

const isHosts: Rule = [
  (value) =>
    Array.isArray(value) && value.every((it) => /^(?:[^:/]+|\[[^\]/]+\])$/u.test(String(it))),
  "a list of host names without ports, such as 'app.example'",
];

/** Includes applications and browser extensions: `URL.origin` is 'null' for their schemes. */
const originOf = ({ origin, protocol, host }: URL): string =>
  origin === 'null' && host !== '' ? `${protocol}//${host}` : origin;

const isOrigins: Rule = [
  (value) =>
    Array.isArray(value) &&
    value.every((it) => URL.canParse(String(it)) && originOf(new URL(String(it))) === it),
  "a list of origins, such as 'https://app.example'",
];

const rules: Readonly<Record<keyof ChatServerOptions, Rule>> = {
  store: [
    (value) =>
      isRecord(value) && isRecord(value['calls']) && having('load$', '')[0](value['sessions']),
    'a store, such as openFiles(directory)',
  ],
  user: isFunction,
  path: isPath,
  protocols: [
    (value) => Array.isArray(value) && value.every((it) => typeof it === 'function'),
    'a list of protocols',
  ],
  hosts: isHosts,
  origins: isOrigins,
  onDisconnect: oneOf('continue', 'interrupt', 'abort'),
  aiSdk: [(value) => value === 6 || value === 7, '6 or 7'],
  approvals: [(queue) => isRecord(queue) && isRecord(queue['chat']), 'an approvalQueue()'],
  maxBytes: wholeNumber(1),
  maxCalls: wholeNumber(1),
  limits: isFunction,
  heartbeatMs: isDelay,
  keepCallsMs: numberFrom(0),
  keepBytes: numberFrom(0),
  onError: isFunction,
  onAccess: isFunction,
  title: isFunction,
  onSuspended: oneOf('cancel', 'refuse'),
  unknownHistory: oneOf('refuse', 'take'),
  loneQuestion: oneOf('atHead', 'begins'),
  onToolError: maskRules.onToolError,
  onDenial: maskRules.onDenial,
  convertPart: partRules.convertPart,
  metadata: isFunction,
  callOptions: isFunction,
};

const servers = new WeakMap<Agent, ChatServer>();

/**
 * Answers one request with an agent, for routes of a framework: `POST = (request) => toResponse(request, agent, options)`.
 * The server is created with the options of the first request of the agent; later ones are ignored.
 */
export const toResponse = (
  request: Request,
  agent: Agent,
  options?: ChatServerOptions,
): Promise<Response> => {
  const server = servers.get(agent) ?? chatServer(agent, options);
  servers.set(agent, server);
  return server.respond(request);
};
