import type { Tool, Verdict } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type ElicitResult,
  type InputRequiredResult,
  inputRequired,
  isInputRequiredResult,
  type McpRequestContext,
  McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool as ListedTool,
} from '@modelcontextprotocol/server';
import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  filter,
  finalize,
  firstValueFrom,
  from,
  fromEvent,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  of,
  ReplaySubject,
  share,
  Subject,
  takeUntil,
  takeWhile,
} from 'rxjs';
import { safeName } from '../text.js';
import {
  type Caller,
  callTool$,
  type Emission,
  errorOf,
  maskOf,
  type Progress,
  type Question,
  refused,
} from './call-tool.js';
import { createQuota, type Quota } from './quota.js';
import type { HttpCaller, Serving } from './serve-options.js';

/** Makes the protocol's server for a connection, or for a request without one. `onClosed` is called when it is closed. */
export type ServerFactory = (
  context: Pick<McpRequestContext, 'era'>,
  onClosed?: () => void,
) => McpServer;

/** A tool with its name for clients. */
interface Entry {
  readonly tool: Tool;
  readonly name: string;
}

/** Shared by all connections of a server. */
export interface Shared {
  /** Emits the tools by their names for clients, now and after each change; open while it has a subscriber. */
  readonly entries$: Observable<ReadonlyMap<string, Entry>>;
  readonly create: ServerFactory;
}

export const createShared = (serving: Serving): Shared => {
  const entries$ = serving.tools$.pipe(
    defaultIfEmpty<readonly Tool[], readonly Tool[]>([]),
    map(entriesOf),
    share({
      connector: () => new ReplaySubject(1),
      // A list that ended stays as it is.
      resetOnComplete: false,
    }),
  );
  const { calls, callsPerClient } = serving.limits;
  const quota = createQuota(calls, callsPerClient);
  const current = (signal: AbortSignal): Promise<ReadonlyMap<string, Entry>> =>
    firstValueFrom(entries$.pipe(takeUntil(aborted$(signal))), { defaultValue: new Map() });
  // The SDK would send the message of any error.
  const masked = (cause: unknown): never => {
    throw internal(serving, cause);
  };
  const create: ServerFactory = ({ era }, onClosed) => {
    // The SDK forgets the first of two calls with the same id, and does not abort it.
    const closed = new AbortController();
    const { name, version, instructions, canChange } = serving;
    const mcp = new McpServer(
      { name, version },
      {
        capabilities: { tools: { listChanged: canChange } },
        ...(instructions !== undefined && { instructions }),
      },
    );
    // Core has the schemas of the tools and checks their input, so they are not registered.
    const { server } = mcp;
    server.onerror = (error) => void maskOf(serving, errorOf(error, 'invalidRequest'));
    server.onclose = () => {
      closed.abort();
      onClosed?.();
    };
    server.setRequestHandler('tools/list', (_request, { mcpReq: { signal } }) =>
      current(signal)
        .then((entries) => ({
          tools: [...entries.values()].map((entry) => listedOf(serving, entry)),
        }))
        .catch(masked),
    );
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const entry = (await current(context.mcpReq.signal).catch(masked)).get(params.name);
      if (entry === undefined) {
        const text = `There is no tool '${params.name.slice(0, 128)}'.`;
        throw new ProtocolError(ProtocolErrorCode.InvalidParams, text);
      }
      const input = params.arguments ?? {};
      return lastValueFrom(
        limited$(
          serving,
          quota,
          textIn(context, 'client'),
          answer$(serving, mcp, era, entry, input, context).pipe(
            takeUntil(aborted$(closed.signal)),
          ),
        ),
        { defaultValue: refused('The call was cancelled.') },
      );
    });
    return mcp;
  };
  return { entries$, create };
};

/** Names that every client accepts; the first tool of a name wins. */
const entriesOf = (tools: readonly Tool[]): ReadonlyMap<string, Entry> =>
  tools.reduce((entries, tool) => {
    const name = safeName('', tool.name);
    return entries.has(name) ? entries : entries.set(name, { tool, name });
  }, new Map<string, Entry>());

const listedOf = ({ annotations }: Serving, { tool, name }: Entry): ListedTool => ({
  name,
  description: tool.description,
  inputSchema: { ...tool.inputSchema, type: 'object' },
  annotations: {
    ...(tool.idempotent === true && { idempotentHint: true }),
    ...((tool.deciders ?? []).length > 0 && { destructiveHint: true }),
    ...annotations?.(tool),
  },
});

const internal = (serving: Serving, cause: unknown): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InternalError, maskOf(serving, errorOf(cause, 'unknown')));

// ---------------------------------------------------------------- one call

type Result = CallToolResult | InputRequiredResult;

const limited$ = (
  serving: Serving,
  quota: Quota,
  client: string | undefined,
  result$: Observable<Result>,
): Observable<Result> =>
  defer(() => {
    const { calls, callsPerClient } = serving.limits;
    const giveBack = quota.take(client);
    if (giveBack === 'all') {
      return of(refused(`${calls} tool calls are running already. Try again later.`));
    }
    if (giveBack === 'client') {
      return of(refused(`${callsPerClient} tool calls of yours are running. Try again later.`));
    }
    return result$.pipe(
      catchError((cause: unknown) => of(refused(maskOf(serving, errorOf(cause, 'unknown'))))),
      finalize(giveBack),
    );
  });

/** A field of the caller over HTTP. */
const textIn = ({ http }: ServerContext, key: keyof HttpCaller): string | undefined => {
  const value = http?.authInfo?.extra?.[key];
  return typeof value === 'string' ? value : undefined;
};

/** Runs a tool, sends its progress, and emits the result. Empty if the client cancels the call or disconnects. */
const answer$ = (
  serving: Serving,
  mcp: McpServer,
  era: McpRequestContext['era'],
  entry: Entry,
  input: Readonly<Record<string, unknown>>,
  context: ServerContext,
): Observable<Result> =>
  defer(() => {
    const { mcpReq, http, sessionId } = context;
    const user = textIn(context, 'user');
    const needed$ = new Subject<InputRequiredResult>();
    const caller: Caller = {
      metadata: {
        ...(sessionId !== undefined && { session: sessionId }),
        ...(user !== undefined && { user }),
      },
      ask$: (question) =>
        !canAsk(mcp, context)
          ? of({ approved: false, reason: 'The client cannot ask the user.' })
          : era === 'modern'
            ? answered$(question, context, needed$)
            : asked$(question, context),
    };
    const token = mcpReq._meta?.progressToken;
    const emission$ = callTool$(serving, entry, input, caller).pipe(
      finalize(() => needed$.complete()),
    );
    return merge<[Result, Result]>(
      needed$,
      token === undefined
        ? emission$.pipe(
            filter(isResult),
            map(({ result }) => result),
          )
        : notified$(serving, emission$, (progress) =>
            mcpReq.notify({
              method: 'notifications/progress',
              params: { progressToken: token, ...progress },
            }),
          ),
    ).pipe(
      takeWhile((result) => !isInputRequiredResult(result), true),
      takeUntil(merge(aborted$(mcpReq.signal), aborted$(http?.req?.signal))),
    );
  });

const isResult = (emission: Emission): emission is Extract<Emission, { readonly type: 'result' }> =>
  emission.type === 'result';

const aborted$ = (signal: AbortSignal | undefined): Observable<unknown> =>
  signal === undefined ? NEVER : signal.aborted ? of(undefined) : fromEvent(signal, 'abort');

/** Sends progress one after another, and emits the result. A notification that cannot be sent is dropped. */
const notified$ = (
  { limits }: Serving,
  emission$: Observable<Emission>,
  notify: (progress: Progress & { readonly progress: number }) => Promise<void>,
): Observable<Result> =>
  defer(() => {
    let count = 0;
    let last = 0;
    return emission$.pipe(
      // Before they wait: they may arrive faster than a client reads.
      filter((emission) => isResult(emission) || (count += 1) <= limits.progress),
      concatMap((emission) => {
        if (isResult(emission)) return of(emission.result);
        const { progress = last + 1 } = emission.progress;
        // The protocol wants numbers that increase.
        last = progress > last ? progress : last + 1;
        return from(notify({ ...emission.progress, progress: last })).pipe(
          ignoreElements(),
          catchError(() => EMPTY),
        );
      }),
    );
  });

// ---------------------------------------------------------------- questions to the user

/** A client that declares elicitation without a mode supports forms. */
const canAsk = ({ server }: McpServer, { mcpReq: { envelope = {} } }: ServerContext): boolean => {
  // Versions up to 2025 declare it once, in their first message.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const declared = server.getClientCapabilities();
  const own: Readonly<Record<string, unknown>> = { ...envelope };
  const capabilities = own[CLIENT_CAPABILITIES_META_KEY] ?? declared;
  const elicitation = isRecord(capabilities) ? capabilities['elicitation'] : undefined;
  return isRecord(elicitation) && ('form' in elicitation || !('url' in elicitation));
};

/** The longest delay of a timer: the time-out is that of the approval. */
const never = 2 ** 31 - 1;

const formOf = ({ text }: Question): ElicitRequestFormParams => ({
  mode: 'form',
  message: text,
  requestedSchema: {
    type: 'object',
    properties: { approve: { type: 'boolean', title: 'Approve', default: false } },
    required: ['approve'],
  },
});

const verdictOf = (answer: Pick<ElicitResult, 'action' | 'content'>): Verdict =>
  answer.action === 'accept' && answer.content?.['approve'] === true
    ? true
    : {
        approved: false,
        reason: answer.action === 'cancel' ? 'The user did not decide.' : 'The user denied it.',
      };

/** Versions of the protocol up to 2025: the server asks while the tool waits. */
const asked$ = (question: Question, { mcpReq }: ServerContext): Observable<Verdict> =>
  defer(() =>
    // Only the version of 2026 has no requests of servers.
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    mcpReq.elicitInput(formOf(question), { signal: mcpReq.signal, timeout: never }),
  ).pipe(
    map(verdictOf),
    catchError(() => of({ approved: false, reason: 'The client did not ask the user.' })),
  );

/** The version of 2026: the call ends with the question, and the client repeats it with the answer. */
const answered$ = (
  question: Question,
  { mcpReq: { inputResponses = {} } }: ServerContext,
  needed$: Subject<InputRequiredResult>,
): Observable<Verdict> =>
  defer(() => {
    if (Object.hasOwn(inputResponses, question.id)) {
      return of(verdictOf(elicitResultOf(inputResponses[question.id])));
    }
    if (question.isNested) {
      return of({
        approved: false,
        reason: 'An agent cannot ask the user over this version of MCP.',
      });
    }
    needed$.next(
      inputRequired({ inputRequests: { [question.id]: inputRequired.elicit(formOf(question)) } }),
    );
    return NEVER;
  });

/** Comes from the client: anything but an acceptance is a denial. */
const elicitResultOf = (response: unknown): Pick<ElicitResult, 'action' | 'content'> => {
  if (!isRecord(response)) return { action: 'decline' };
  const { action, content } = response;
  if (action === 'cancel') return { action };
  return action === 'accept' && isRecord(content) && content['approve'] === true
    ? { action, content: { approve: true } }
    : { action: 'decline' };
};
