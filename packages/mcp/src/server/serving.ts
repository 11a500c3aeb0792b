import { randomBytes } from 'node:crypto';
import {
  createRequestStateCodec,
  type McpRequestContext,
  McpServer,
} from '@modelcontextprotocol/server';
import {
  EMPTY,
  groupBy,
  map,
  merge,
  mergeMap,
  type Observable,
  skip,
  take,
  takeLast,
  timer,
} from 'rxjs';
import { errorOf, maskOf } from './call-tool.js';
import { openList, type OpenList } from './lists.js';
import { checkPrompts } from './prompts.js';
import { createQuota } from './quota.js';
import { type Connection, type Room, textIn, type ToolEntry } from './requests.js';
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

/** Makes the server of a connection or request. `onClosed` is called when it is closed. */
export type ServerFactory = (
  context: Pick<McpRequestContext, 'era'> & {
    /** The tools whose headers the SDK checks: clients of version 2026-07-28 repeat marked arguments in headers. */
    readonly entries?: readonly ToolEntry[];
  },
  onClosed?: () => void,
) => Served;

/** Shared by all connections of a server. */
export interface Shared {
  /** Emits each change. Keeps the lists open while it has a subscriber, and errors if one of them does. */
  readonly changes$: Observable<Change>;
  readonly create: ServerFactory;
  /** The current tools. */
  readonly tools: OpenList<ToolEntry>['current'];
}

export const createShared = (serving: Serving): Shared => {
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
  const changesOf = (list: OpenList<unknown> | undefined, change: Change) =>
    list === undefined
      ? EMPTY
      : list.list$.pipe(
          skip(1),
          map(() => change),
        );
  return {
    changes$: merge(
      changesOf(room.tools, { list: 'tools' }),
      changesOf(room.resources, { list: 'resources' }),
      changesOf(room.prompts, { list: 'prompts' }),
      resourceUpdates$ === undefined ? EMPTY : updates$(resourceUpdates$),
    ),
    create: ({ era, entries }, onClosed) => createServed(room, era, entries ?? [], onClosed),
    tools: room.tools.current,
  };
};

/** A resource that changes all the time is announced now and then. */
const updates$ = (uris$: Observable<string>): Observable<Change> =>
  uris$.pipe(
    groupBy((uri) => uri, { duration: () => timer(updateGapMs) }),
    mergeMap((same$) => merge(same$.pipe(take(1)), same$.pipe(skip(1), takeLast(1)))),
    map((updated) => ({ updated })),
  );

const updateGapMs = 100;

const createServed = (
  room: Room,
  era: McpRequestContext['era'],
  entries: readonly ToolEntry[],
  onClosed: (() => void) | undefined,
): Served => {
  const { serving, codec, tools, resources, prompts } = room;
  const { name, version, instructions, resourceUpdates$ } = serving;
  const closed = new AbortController();
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
  mcp.toolInputSchemaJson = (called) => entries.find((it) => it.name === called)?.tool.inputSchema;
  const { server } = mcp;
  server.onerror = (error) => void maskOf(serving, errorOf(error, 'invalidRequest'));
  server.onclose = () => {
    closed.abort();
    onClosed?.();
  };
  const connection: Connection = { ...room, mcp, era, closed: closed.signal };
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
