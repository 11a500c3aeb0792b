import {
  addTools,
  cell,
  isMillraceError,
  type Layer,
  type Context,
  type MillraceError,
  type Tool,
  restoreAsyncContext,
} from 'millrace';
import type { Call } from 'millrace/call';
import { onSuspensionCancelled } from 'millrace/sessions';
import { messageOf } from 'millrace/values';
import {
  combineLatest,
  defer,
  finalize,
  map,
  merge,
  type Observable,
  ReplaySubject,
  retry,
  share,
  skipWhile,
  startWith,
  Subject,
  timer,
} from 'rxjs';
import { createAdmission } from './admission.js';
import { warn } from './client.js';
import { failureOf, shownTo } from './failure.js';
import { createLink, type Link } from './connection.js';
import { type McpRequests, requestsOf } from './programs.js';
import { backOff, type McpServer, type Server, serverOf } from './server-options.js';
import { storedTask } from './tasks.js';
import { type ToolPage, toolLists$ } from './tool-list.js';

/** The state of a server. */
export interface McpStatus {
  readonly name: string;
  /** `failed`: it is reconnected after a wait. */
  readonly status: 'connecting' | 'connected' | 'failed';
  readonly tools: readonly Tool[];
  /** The pages of tools that have one, to be read with `resource$`. */
  readonly pages: readonly ToolPage[];
  /** Why tools were left out, or why it cannot be reached. */
  readonly warnings: readonly string[];
  readonly error?: MillraceError;
}

export interface McpLayer extends Layer, McpRequests {
  /**
   * The servers, now and after each change. They are connected while a call runs or there is a subscriber: subscribe
   * to stay connected between calls. Never completes or errors.
   */
  readonly servers$: Observable<readonly McpStatus[]>;
}

/**
 * Adds the tools of MCP servers to each call: `use: [mcp(server, …)]`. A call waits until each server has listed its
 * tools or failed. Servers are shared by all calls, and connected while one runs. A server that fails costs its own
 * tools only: it is reported by a `warning`, and reconnected with back-off. Changed lists apply from the next request on.
 */
export const mcp = (...servers: readonly McpServer[]): McpLayer => {
  const linked = servers
    .map((server) => serverOf('mcp()', server))
    .map((server) => ({ server, link: createLink(server) }));
  const servers$ = combineLatest(linked.map(statusOf$)).pipe(
    share({ connector: () => new ReplaySubject(1) }),
    restoreAsyncContext(),
  );
  const requests = requestsOf(linked, servers$);
  const owners = new Map<string, number>();
  return {
    name: 'mcp',
    // The priority of `addTools`: after the session has set its own tools, before tools are selected.
    priority: 54,
    servers$,
    ...requests,
    call: (context) => {
      context.local(onSuspensionCancelled).add((suspension) => {
        const task = storedTask(suspension);
        if (!linked.some(({ server }) => server.name === task?.server)) return;
        requests.cancelTask$(suspension).subscribe({
          error: (cause: unknown) =>
            linked.forEach(({ server }) => warnOfTask(server, task, cause)),
        });
      });
      return (next) => (call) =>
        addTools(toolsFor$(servers$, owners, context, call)).call?.(context)(next)(call) ??
        next(call);
    },
  };
};

const warnOfTask = (server: Server, task: ReturnType<typeof storedTask>, cause: unknown): void => {
  if (server.name !== task?.server) return;
  const why = messageOf(cause);
  warn(
    server,
    `The task '${shownTo(server, task.taskId, 100)}' of a cancelled tool call was not cancelled: ${why}`,
  );
};

/** The tools of the servers for a call, once each server has listed its tools or failed. Reports warnings. */
const toolsFor$ = (
  servers$: McpLayer['servers$'],
  owners: Map<string, number>,
  { hooks, local }: Pick<Context, 'hooks' | 'local'>,
  call: Call,
): Observable<readonly Tool[]> =>
  servers$.pipe(
    skipWhile((statuses) => statuses.some(({ status }) => status === 'connecting')),
    map((statuses) => {
      const { free, leftOut } = apart(statuses, owners, namesIn(call));
      const reported = local(warningsOfCall);
      [...statuses.flatMap(({ warnings }) => warnings), ...leftOut]
        .filter((message) => !reported.has(message))
        .forEach((message) => {
          reported.add(message);
          hooks.report(hooks.iteration(), { type: 'warning', message });
        });
      return free;
    }),
  );

const warningsOfCall = cell('call', () => new Set<string>());

const taken = (name: string): string =>
  `The MCP tool '${name}' is left out: the name is taken. Set another 'prefix'.`;

const ofAnother = (name: string, server: string, owner = ''): string =>
  `The MCP tool '${name}' of the server '${server}' is left out: until the process restarts, the name stays with the server '${owner}', which had it first. Set another 'prefix'.`;

const namesIn = ({ toolkit }: Call): readonly string[] => [
  ...toolkit.current.names,
  ...toolkit.current.entries.flatMap((entry) =>
    'tools' in entry ? [entry.name, ...entry.tools.map(({ name }) => name)] : [entry.name],
  ),
];

/**
 * Separates tools whose names are still free from the others: the first tool with a name wins. The name stays with its server, also in
 * later calls and while that one fails: a server that lists it afterwards does not get the calls of another one.
 */
const apart = (
  statuses: readonly McpStatus[],
  owners: Map<string, number>,
  names: readonly string[],
): { readonly free: readonly Tool[]; readonly leftOut: readonly string[] } => {
  const known = new Set(names);
  const free: Tool[] = [];
  const leftOut: string[] = [];
  // Two servers may have one name, but not one place.
  for (const [at, { name: server, tools }] of statuses.entries()) {
    for (const tool of tools) {
      const { name } = tool;
      const owner = owners.get(name) ?? at;
      if (known.has(name)) leftOut.push(taken(name));
      else if (owner !== at) leftOut.push(ofAnother(name, server, statuses[owner]?.name));
      else {
        free.push(tool);
        known.add(name);
        owners.set(name, at);
      }
    }
  }
  return { free, leftOut };
};

/** Passes warnings to the callback of the program. If it throws, calls continue. */
const shown = ({ onWarning }: Server, status: McpStatus): McpStatus => {
  try {
    status.warnings.forEach((warning) => onWarning?.(warning));
    return status;
  } catch (cause) {
    const why = messageOf(cause);
    return {
      ...status,
      warnings: [
        ...status.warnings,
        `'onWarning' of the MCP server '${status.name}' failed: ${why}`,
      ],
    };
  }
};

const none = { tools: [], pages: [] } as const;

/** Follows one server, and reconnects it without end. */
const statusOf$ = ({ server, link }: { server: Server; link: Link }): Observable<McpStatus> => {
  const admission = createAdmission(server);
  const { name } = server;
  return defer(() => {
    const failures$ = new Subject<McpStatus>();
    const connected$ = toolLists$(server, link, admission).pipe(
      map((list): McpStatus => ({ name, status: 'connected', ...list })),
      retry({
        resetOnSuccess: true,
        delay: (cause: unknown, failures) => {
          const error = isMillraceError(cause)
            ? cause
            : failureOf(server, 'to list its tools', cause);
          const { message } = error;
          failures$.next({ name, status: 'failed', ...none, warnings: [message], error });
          return timer(backOff(server, failures));
        },
      }),
    );
    return merge(failures$, connected$).pipe(
      map((status) => shown(server, status)),
      startWith<McpStatus>({ name, status: 'connecting', ...none, warnings: [] }),
      // Forget the last failure: the next use connects again.
      finalize(() => link.current$.next(undefined)),
    );
  });
};
