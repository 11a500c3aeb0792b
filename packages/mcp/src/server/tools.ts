import type { Tool } from 'millrace';
import {
  type CallToolResult,
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
  type Tool as ListedTool,
} from '@modelcontextprotocol/server';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  ignoreElements,
  lastValueFrom,
  map,
  type Observable,
  of,
  throwError,
} from 'rxjs';
import { safeName } from '../text.js';
import {
  callTool$,
  type Emission,
  errorOf,
  isStructured,
  maskOf,
  type Progress,
  refused,
} from './call-tool.js';
import {
  type Connection,
  type Incoming,
  incomingOf,
  limited$,
  listed,
  listOf,
  type ToolEntry,
} from './requests.js';
import type { Serving } from './serve-options.js';

/** Names that every client accepts; the first tool of a name wins. */
export const entriesOf = (tools: readonly Tool[]): readonly ToolEntry[] => [
  ...tools
    .reduce((entries, tool) => {
      const name = safeName('', tool.name);
      return entries.has(name) ? entries : entries.set(name, { tool, name });
    }, new Map<string, ToolEntry>())
    .values(),
];

type Result = CallToolResult | InputRequiredResult;

export const handleTools = (connection: Connection): void => {
  const { mcp, serving, tools } = connection;
  // Core has the schemas of the tools and checks their input, so they are not registered.
  mcp.server.setRequestHandler('tools/list', async ({ params }, context) => {
    const { page, next } = await listed(connection, tools, context, params?.cursor, (entry) =>
      listedTool(serving, entry),
    );
    return { tools: page, ...next };
  });
  mcp.server.setRequestHandler('tools/call', async ({ params }, context) => {
    const { name, arguments: input = {} } = params;
    const entry = (await listOf(connection, tools, context)).find((it) => it.name === name);
    if (entry === undefined) {
      const text = `There is no tool '${name.slice(0, 128)}'.`;
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, text);
    }
    const incoming = incomingOf(connection, context, [name, input]);
    return lastValueFrom(
      limited$(
        connection,
        context,
        incoming,
        toolResult$(serving, entry, input, incoming, context),
      ).pipe(
        catchError((cause: unknown) =>
          cause instanceof MissingRequiredClientCapabilityError
            ? throwError(() => cause)
            : of<Result>(
                refused(
                  cause instanceof ProtocolError
                    ? cause.message
                    : maskOf(serving, errorOf(cause, 'unknown')),
                ),
              ),
        ),
      ),
      { defaultValue: refused('The call was cancelled.') },
    );
  });
};

const listedTool = ({ annotations }: Serving, { tool, name }: ToolEntry): ListedTool => ({
  name,
  description: tool.description,
  inputSchema: { ...tool.inputSchema, type: 'object' },
  ...(isStructured(tool) && { outputSchema: { ...tool.outputSchema, type: 'object' } }),
  annotations: {
    ...(tool.idempotent === true && { idempotentHint: true }),
    ...((tool.deciders ?? []).length > 0 && { destructiveHint: true }),
    ...annotations?.(tool),
  },
});

/** Runs a tool, sends its progress, and emits the result. */
const toolResult$ = (
  serving: Serving,
  entry: ToolEntry,
  input: Readonly<Record<string, unknown>>,
  { metadata, asking: { client } }: Incoming,
  { mcpReq }: ServerContext,
): Observable<CallToolResult> => {
  const emission$ = callTool$(serving, entry, input, { metadata, client });
  const token = mcpReq._meta?.progressToken;
  return token === undefined
    ? emission$.pipe(
        filter(isResult),
        map(({ result }) => result),
      )
    : notified$(serving, emission$, (progress) =>
        mcpReq.notify({
          method: 'notifications/progress',
          params: { progressToken: token, ...progress },
        }),
      );
};

const isResult = (emission: Emission): emission is Extract<Emission, { readonly type: 'result' }> =>
  emission.type === 'result';

/** Sends progress one after another, and emits the result. A notification that cannot be sent is dropped. */
const notified$ = (
  { limits }: Serving,
  emission$: Observable<Emission>,
  notify: (progress: Progress & { readonly progress: number }) => Promise<void>,
): Observable<CallToolResult> =>
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
