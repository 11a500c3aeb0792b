import { createHash, randomUUID } from 'node:crypto';
import {
  contextKey,
  isMillraceError,
  MillraceError,
  type ToolContext,
  type Validator,
} from 'millrace';
import { isRecord } from 'millrace/values';
import {
  CLIENT_CAPABILITIES_META_KEY,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  isSpecType,
  MissingRequiredClientCapabilityError,
  type McpRequestContext,
  type McpServer,
  type RequestStateCodec,
  SdkError,
  SdkErrorCode,
  type ServerContext,
} from '@modelcontextprotocol/server';
import {
  audit,
  catchError,
  defer,
  finalize,
  from,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  switchMap,
  throwError,
} from 'rxjs';
import { cleaned } from '../text.js';
import type { Feature, Question } from './question.js';
import { type McpSample, type McpSampleRequest, sampleOf } from './sampling.js';

/** How important a log message is, from the least to the most. */
export type McpLogLevel =
  'debug' | 'info' | 'notice' | 'warning' | 'error' | 'critical' | 'alert' | 'emergency';

/** A directory or file that a client works with. */
export interface McpRoot {
  /** A `file:` URL. */
  readonly uri: string;
  readonly name?: string;
}

/** A question with fields for the user of an MCP client. */
export interface McpForm<Value> {
  /** Names the question when a client of version 2026-07-28 repeats the call with the answer. Default: a hash of the question. */
  readonly id?: string;
  readonly message: string;
  /** The fields: an object whose properties are strings, numbers, booleans or choices, in `jsonSchema(…)`. */
  readonly schema: Validator<Value>;
}

/** The answer of a user. The content matches the schema of the form. */
export type McpFormAnswer<Value> =
  | { readonly action: 'accept'; readonly content: Value }
  | { readonly action: 'decline' | 'cancel' };

/** A page for the user of an MCP client to open, such as a login or a payment. */
export interface McpPage {
  /** As the id of a form. */
  readonly id?: string;
  readonly message: string;
  readonly url: string;
}

/**
 * The MCP client that called, for tools, prompts and resources. Its questions are cold and emit one answer. They error with a
 * `MillraceError`: `refused` if the client does not support or does not answer them, `invalidResponse` if the answer has the wrong
 * shape. Clients of version 2026-07-28 are asked by ending the call and repeating it: what runs before a question runs again.
 */
export interface McpClient {
  /** The requests that the client can answer. */
  readonly supports: Readonly<Record<Feature, boolean>>;
  /** Sends a log message, if the client wants messages of this level. `data` is a string or JSON. */
  readonly log: (level: McpLogLevel, data: unknown, logger?: string) => void;
  /** Asks the user to fill in a form. */
  readonly elicit$: <Value>(form: McpForm<Value>) => Observable<McpFormAnswer<Value>>;
  /** Asks the user to open a page. Emits `accept` when the user agrees, which is before the page is done. */
  readonly elicitUrl$: (page: McpPage) => Observable<'accept' | 'decline' | 'cancel'>;
  /** Asks the model of the client. */
  readonly sample$: (request: McpSampleRequest) => Observable<McpSample>;
  /** The directories and files that the client works with. */
  readonly roots$: Observable<readonly McpRoot[]>;
}

/** A request of a client, for the functions of resources, prompts and completions. */
export interface McpRequest {
  readonly client: McpClient;
  /** Labels of the request: `session` and `user`, if known. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Aborts when the client cancels the request or leaves. */
  readonly signal: AbortSignal;
}

/** The client of one request. */
export interface Asking {
  /** For an agent, `isNested` is true: it asks while it works, so its call cannot be repeated with the answer. */
  readonly client: (isNested: boolean) => McpClient & { readonly ask$: Ask };
  /** Emits the result that ends a request of version 2026-07-28: the client has to answer, and to repeat it. */
  readonly needed$: Observable<InputRequiredResult>;
}

type Ask = <Answer>(question: Question<Answer>) => Observable<Answer>;

/** The state that a client of version 2026-07-28 brings back, signed: the answers of earlier rounds, for the same call only. */
export interface AskedBefore {
  readonly call: string;
  readonly answers: Readonly<Record<string, unknown>>;
}

const clientKey = contextKey<Asking['client']>('client of serveMcp()');

/** The client, as a context value for the tools of a call. */
export const clientEntry = (client: Asking['client']) => clientKey.of(client);

/** The client of a context, with questions of any kind. */
export const askingClient = ({ get, agent }: Pick<ToolContext, 'get' | 'agent'>) =>
  get(clientKey)(agent.length > 1);

/**
 * Returns the MCP client that called a tool: `run: (input, context) => mcpClient(context).roots$`. Throws a `config` error if
 * the tool does not run in `serveMcp` or `mcpHandler`.
 */
export const mcpClient = (context: Pick<ToolContext, 'get' | 'agent'>): McpClient =>
  askingClient(context);

// ---------------------------------------------------------------- questions in both eras

export interface AskingOptions {
  readonly mcp: McpServer;
  readonly era: McpRequestContext['era'];
  readonly context: ServerContext;
  readonly codec: RequestStateCodec<AskedBefore>;
  /** The method and the parameters of the request. */
  readonly call: unknown;
  readonly mostLogs: number;
}

/** Connects one request to its client. */
export const createAsking = (options: AskingOptions): Asking => {
  const { era, mcp, context, mostLogs } = options;
  const supports = supportsOf(mcp, context);
  const { ask$, needed$ } =
    era === 'modern' ? repeating(options) : { ask$: waiting(options), needed$: NEVER };
  let logs = 0;
  let logged = 0;
  const client = (isNested: boolean) => {
    const askAny$: Ask = (question) =>
      defer(() => {
        if (!supports[question.feature])
          return throwError(() => unsupported(question.feature, era));
        if (isNested && era === 'modern') return throwError(() => cannotRepeat());
        return ask$(question);
      });
    return {
      supports,
      ask$: askAny$,
      log: (level: McpLogLevel, data: unknown, logger?: string) => {
        const shown = loggable(data);
        logs += 1;
        logged += shown.length;
        if (logs > mostLogs || logged > mostLoggedInAll) return;
        // Deprecated only in version 2026-07-28.
        // eslint-disable-next-line @typescript-eslint/no-deprecated
        const { log } = context.mcpReq;
        log(level, shown.data, logger).catch(() => undefined);
      },
      elicit$: <Value>(form: McpForm<Value>) => defer(() => askAny$(formOf(form))),
      elicitUrl$: (page: McpPage) => defer(() => askAny$(pageOf(page, era))),
      sample$: (request: McpSampleRequest) => defer(() => askAny$(sampleOf(request))),
      roots$: askAny$(rootsQuestion),
    };
  };
  return { client, needed$ };
};

/** The longest delay of a timer: only the time-out of the tool applies. */
const never = 2 ** 31 - 1;

/** Versions of the protocol up to 2025: the server asks while the tool waits. */
const waiting =
  ({ context: { mcpReq } }: AskingOptions): Ask =>
  ({ request, read$ }) =>
    defer(() => {
      const left = new AbortController();
      const signal = AbortSignal.any([mcpReq.signal, left.signal]);
      const { method, params } = request;
      return from(mcpReq.send({ method, params: { ...params } }, { signal, timeout: never })).pipe(
        catchError((cause: unknown) => throwError(() => unanswered(cause))),
        switchMap(read$),
        map((answer) => {
          if (answer === undefined) throw misshapen();
          return answer;
        }),
        finalize(() => left.abort()),
      );
    });

/** The version of 2026: the call ends with the questions, and the client repeats it with the answers. */
const repeating = ({ context, codec, call }: AskingOptions) => {
  const { mcpReq } = context;
  const digest = hashOf(call);
  const before = mcpReq.requestState<AskedBefore>();
  const carried = before?.call === digest ? before.answers : {};
  const given = mcpReq.inputResponses ?? {};
  const accepted = new Map<string, unknown>(Object.entries(carried));
  const open = new Map<string, InputRequest>();
  const opened$ = new Subject<void>();
  const needed$ = opened$.pipe(
    // Questions that are asked at the same time form one round.
    audit(() => Promise.resolve()),
    switchMap(() => codec.mint({ call: digest, answers: Object.fromEntries(accepted) }, context)),
    map((requestState) => inputRequired({ inputRequests: Object.fromEntries(open), requestState })),
  );
  const ask$: Ask = ({ id: name, request, read$ }) => {
    const id = name ?? `ask-${hashOf(request)}`;
    const answers = Object.hasOwn(given, id) ? given : carried;
    const answer$ = Object.hasOwn(answers, id) ? read$(answers[id]) : of(undefined);
    return answer$.pipe(
      switchMap((answer) => {
        if (answer !== undefined) {
          accepted.set(id, answers[id]);
          return of(answer);
        }
        open.set(id, request);
        opened$.next();
        return NEVER;
      }),
    );
  };
  return { ask$, needed$ };
};

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);

/** A client that declares elicitation without a mode supports forms. */
const supportsOf = (
  { server }: McpServer,
  { mcpReq: { envelope = {} } }: ServerContext,
): McpClient['supports'] => {
  // Versions up to 2025 declare it once, in their first message.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const declared = server.getClientCapabilities();
  const own: Readonly<Record<string, unknown>> = { ...envelope };
  const given = own[CLIENT_CAPABILITIES_META_KEY] ?? declared;
  const { elicitation, sampling, roots } = isRecord(given) ? given : {};
  return {
    forms: isRecord(elicitation) && ('form' in elicitation || !('url' in elicitation)),
    pages: isRecord(elicitation) && 'url' in elicitation,
    sampling: isRecord(sampling),
    samplingTools: isRecord(sampling) && isRecord(sampling['tools']),
    roots: isRecord(roots),
  };
};

// ---------------------------------------------------------------- the four questions

const formOf = <Value>({ id, message, schema }: McpForm<Value>): Question<McpFormAnswer<Value>> => {
  const { type, properties, required } = schema.jsonSchema;
  const params: unknown = {
    mode: 'form',
    message,
    requestedSchema: { type, properties, required },
  };
  if (!isSpecType.ElicitRequestFormParams(params)) {
    throw new MillraceError(
      'config',
      'elicit$(): the properties of a form are strings, numbers, booleans or choices. Ask for nested objects in forms of their own.',
    );
  }
  return {
    id,
    feature: 'forms',
    request: { method: 'elicitation/create', params },
    read$: (answer) => {
      if (!isSpecType.ElicitResult(answer)) return of(undefined);
      const { action, content } = answer;
      if (action !== 'accept') return of({ action });
      return schema.validation$(content).pipe(
        map((verdict) =>
          // The schema has validated it.
          // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
          verdict.valid ? { action, content: verdict.value as Value } : undefined,
        ),
      );
    },
  };
};

const pageOf = (
  { id, message, url }: McpPage,
  era: McpRequestContext['era'],
): Question<'accept' | 'decline' | 'cancel'> => {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new MillraceError('config', 'elicitUrl$() needs the complete URL of a web page.');
  }
  const params = { mode: 'url' as const, message, url };
  return {
    id,
    feature: 'pages',
    request:
      era === 'modern'
        ? inputRequired.elicitUrl(params)
        : { method: 'elicitation/create', params: { ...params, elicitationId: randomUUID() } },
    read$: (answer) => of(isSpecType.ElicitResult(answer) ? answer.action : undefined),
  };
};

const rootsQuestion: Question<readonly McpRoot[]> = {
  id: undefined,
  feature: 'roots',
  request: { method: 'roots/list' },
  read$: (answer) =>
    of(
      isSpecType.ListRootsResult(answer)
        ? answer.roots.map(({ uri, name }) => ({ uri, ...(name !== undefined && { name }) }))
        : undefined,
    ),
};

// ---------------------------------------------------------------- log messages and errors

const mostLogged = 10_000;
/** The maximum number of characters of the log messages of a call, since a client may not read them. */
const mostLoggedInAll = 1_000_000;

/** JSON of a limited size. */
const loggable = (data: unknown): { readonly data: unknown; readonly length: number } => {
  if (typeof data === 'string') return shortened(data);
  try {
    // It returns undefined for functions and symbols, despite its type.
    const json: unknown = JSON.stringify(data);
    if (typeof json !== 'string') return { data: '', length: 0 };
    return json.length > mostLogged ? shortened(json) : { data, length: json.length };
  } catch {
    return shortened('[not JSON]');
  }
};

const shortened = (text: string) => {
  const data = cleaned(text, mostLogged);
  return { data, length: data.length };
};

const refusedWith = (userMessage: string, cause?: unknown): MillraceError =>
  new MillraceError('refused', userMessage, { userMessage, ...(cause !== undefined && { cause }) });

const features = {
  forms: { text: 'forms (elicitation)', capability: { elicitation: { form: {} } } },
  pages: {
    text: 'opening pages (elicitation with URLs)',
    capability: { elicitation: { url: {} } },
  },
  sampling: { text: 'requests to its model (sampling)', capability: { sampling: {} } },
  samplingTools: {
    text: 'requests to its model with tools (sampling)',
    capability: { sampling: { tools: {} } },
  },
  roots: { text: 'roots', capability: { roots: {} } },
};

/** In the version of 2026-07-28, the request fails with the capability that is missing, unless the tool copes without it. */
const unsupported = (feature: Feature, era: McpRequestContext['era']): MillraceError => {
  const { text, capability } = features[feature];
  const message = `The client does not support ${text}.`;
  return refusedWith(
    message,
    era === 'modern'
      ? new MissingRequiredClientCapabilityError({ requiredCapabilities: capability }, message)
      : undefined,
  );
};

/** The error of the protocol in an error of a question that the client does not support. */
export const missingCapabilityIn = (
  error: unknown,
): MissingRequiredClientCapabilityError | undefined => {
  const cause = isMillraceError(error) ? error.cause : undefined;
  return cause instanceof MissingRequiredClientCapabilityError ? cause : undefined;
};

const cannotRepeat = (): MillraceError =>
  refusedWith('An agent cannot ask the client over this version of MCP.');

/** Converts errors of the SDK, which checks the shape of some answers. */
const unanswered = (cause: unknown): MillraceError =>
  cause instanceof SdkError && cause.code === SdkErrorCode.InvalidResult
    ? misshapen(cause)
    : refusedWith('The client did not answer a question of the server.', cause);

const misshapen = (cause?: unknown): MillraceError => {
  const userMessage = 'The answer of the client has the wrong shape.';
  return new MillraceError('invalidResponse', userMessage, {
    userMessage,
    ...(cause !== undefined && { cause }),
  });
};
