import { randomBytes } from 'node:crypto';
import {
  createRequestStateCodec,
  type McpRequestContext,
  McpServer,
} from '@modelcontextprotocol/server';
import {
  asyncScheduler,
  defer,
  EMPTY,
  firstValueFrom,
  groupBy,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  type SchedulerLike,
  share,
  skip,
  take,
  takeLast,
  tap,
  throwError,
  timer,
} from 'rxjs';
import { errorOf, maskOf } from './call-tool.js';
import { openList, type OpenList } from './lists.js';
import { checkPrompts } from './prompts.js';
import { createQuota } from './quota.js';
import {
  aborted$,
  type Connection,
  current$,
  type Room,
  textIn,
  type ToolEntry,
} from './requests.js';
import { checkResources } from './resources.js';
import { handleCompletion } from './serve-completion.js';
import type { Serving } from './serve-options.js';
import { handlePrompts } from './serve-prompts.js';
import { handleResources } from './serve-resources.js';
import { entriesOf, handleTools } from './tools.js';

/** A notification to clients: a list that changed, or a resource whose content did. */
export type Change =
  { readonly list: 'tools' | 'resources' | 'prompts' } | { readonly updated: string };

/** The protocol's server for a connection, or for a request without one. */
export interface Served {
  readonly mcp: McpServer;
  /** Notifies the client of a connection, if it subscribed. */
  readonly notify: (change: Change) => void;
}

/** The tools, or why they are missing. */
export type CurrentTools = readonly ToolEntry[] | Error;

/** Makes the server of a connection or request. `onClosed` is called when it is closed. */
export type ServerFactory = (
  context: Pick<McpRequestContext, 'era'> & {
    /** The tools of a call whose headers the SDK checks: clients of version 2026-07-28 repeat marked arguments in headers. */
    readonly checked?: CurrentTools;
  },
  onClosed?: () => void,
) => Served;

/** Shared by all connections of a server. */
export interface Shared {
  /**
   * Emits each change. Keeps the lists open while it has subscribers, who share it, and errors if one of them does. A list that
   * has failed counts as changed when it is there again.
   */
  readonly changes$: Observable<Change>;
  readonly create: ServerFactory;
  /** The current tools, for a client that calls one. */
  readonly tools: (client: string | undefined, signal: AbortSignal) => Promise<CurrentTools>;
}

export const createShared = (
  serving: Serving,
  scheduler: SchedulerLike = asyncScheduler,
): Shared => {
  const { limits, resources, prompts, resourceUpdates$, stateKey } = serving;
  const room: Room = {
    serving,
    tools: openList(serving.tools, entriesOf),
    resources: resources && openList(resources, checkResources),
    prompts: prompts && openList(prompts, checkPrompts),
    quota: createQuota(limits.calls, limits.callsPerClient),
    codec: createRequestStateCodec({
      key: stateKey ?? randomBytes(32),
      bind: ({ http }) => textIn(http, 'user') ?? '',
    }),
  };
  return {
    changes$: merge(
      changesOf$(room.tools, { list: 'tools' }),
      changesOf$(room.resources, { list: 'resources' }),
      changesOf$(room.prompts, { list: 'prompts' }),
      resourceUpdates$ === undefined ? EMPTY : updates$(resourceUpdates$, scheduler),
    ).pipe(share()),
    create: (context, onClosed) => createServed(room, context, onClosed),
    tools: (client, signal) =>
      firstValueFrom(
        current$(room, room.tools, { method: 'tools/call', client, aborted$: aborted$(signal) }),
        { defaultValue: [] },
      ).catch(errorIn),
  };
};

const errorIn = (cause: unknown): Error =>
  cause instanceof Error ? cause : new Error(String(cause));

const changesOf$ = (list: OpenList<unknown> | undefined, change: Change): Observable<Change> => {
  if (list === undefined) return EMPTY;
  let hasFailed = false;
  return defer(() =>
    list.list$.pipe(
      skip(hasFailed ? 0 : 1),
      tap({ next: () => (hasFailed = false), error: () => (hasFailed = true) }),
      map(() => change),
    ),
  );
};

/** Limits how often a resource is announced that changes constantly. */
const updates$ = (uris$: Observable<string>, scheduler: SchedulerLike): Observable<Change> =>
  uris$.pipe(
    groupBy((uri) => uri, { duration: () => timer(updateGapMs, scheduler) }),
    mergeMap((same$) => merge(same$.pipe(take(1)), same$.pipe(skip(1), takeLast(1)))),
    map((updated) => ({ updated })),
  );

const updateGapMs = 100;

const createServed = (
  room: Room,
  { era, checked }: Parameters<ServerFactory>[0],
  onClosed: (() => void) | undefined,
): Served => {
  const { serving, codec, tools, resources, prompts } = room;
  const { name, version, instructions, resourceUpdates$ } = serving;
  const closed = new AbortController();
  const entries = checked instanceof Error ? undefined : checked;
  const mcp = new McpServer(
    { name, version },
    {
      capabilities: {
        logging: {},
        tools: { listChanged: tools.canChange },
        ...(resources && {
          resources: {
            listChanged: resources.canChange,
            subscribe: resourceUpdates$ !== undefined,
          },
        }),
        ...(prompts && { prompts: { listChanged: prompts.canChange } }),
        ...((resources ?? prompts) && { completions: {} }),
      },
      requestState: { verify: (state, context) => codec.verify(state, context) },
      ...(instructions !== undefined && { instructions }),
    },
  );
  // The SDK knows only tools that are registered.
  mcp.toolInputSchemaJson = (called) => entries?.find((it) => it.name === called)?.tool.inputSchema;
  const { server } = mcp;
  server.onerror = (error) => void maskOf(serving, errorOf(error, 'invalidRequest'));
  server.onclose = () => {
    closed.abort();
    onClosed?.();
  };
  // A call runs with the tools that its headers were checked for.
  const list$ = checked instanceof Error ? throwError(() => checked) : of(checked ?? []);
  const calledTools = checked === undefined ? tools : { ...tools, list$ };
  const connection: Connection = { ...room, tools: calledTools, mcp, era, closed: closed.signal };
  handleTools(connection);
  const subscribed = resources && handleResources(connection, resources);
  if (prompts) handlePrompts(connection, prompts);
  if (resources ?? prompts) handleCompletion(connection);
  return { mcp, notify: (change) => notify(connection, subscribed, change) };
};

const notify = (
  { mcp, era }: Connection,
  subscribed: ReadonlySet<string> | undefined,
  change: Change,
): void => {
  if ('updated' in change) {
    // Of the version of 2026, the SDK knows the subscriptions.
    if (era === 'legacy' && subscribed?.has(change.updated) !== true) return;
    mcp.server.sendResourceUpdated({ uri: change.updated }).catch(() => undefined);
    return;
  }
  if (change.list === 'tools') mcp.sendToolListChanged();
  if (change.list === 'resources') mcp.sendResourceListChanged();
  if (change.list === 'prompts') mcp.sendPromptListChanged();
};
