import { isMillraceError, MillraceError, type Tool } from 'millrace';
import { messageOf } from 'millrace/values';
import type { Tool as ListedTool } from '@modelcontextprotocol/client';
import {
  asyncScheduler,
  type BehaviorSubject,
  catchError,
  concat,
  concatMap,
  defer,
  delay,
  EMPTY,
  filter,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  repeat,
  retry,
  scan,
  scheduled,
  startWith,
  switchMap,
  take,
  tap,
  throwError,
  timeout,
  timer,
  toArray,
} from 'rxjs';
import { type Connection, createLink, type Link } from './connection.js';
import {
  backOff,
  type McpServer,
  type Server,
  serverOf,
  type ToolChange,
} from './server-options.js';
import { type Admission, createAdmission } from './admission.js';
import { pageOfTool } from './content.js';
import { nameShownTo, shownTo } from './failure.js';
import { furtherTools, type Offered, toolOf } from './tools.js';

/** The usable tools of a server, and why others are not. */
export interface ToolList {
  readonly tools: readonly Tool[];
  readonly pages: readonly ToolPage[];
  readonly warnings: readonly string[];
}

/** A tool with a page of MCP Apps, which shows its results. */
export interface ToolPage {
  /** The name of the tool for the model. */
  readonly tool: string;
  /** Starts with `ui://`. */
  readonly uri: string;
}

/** The least time between two lists, in milliseconds: a server may announce changes without end. */
const listGapMs = 250;

/**
 * Connects to an MCP server, emits its tools, and again after each change. Cold; unsubscribing disconnects, and ends a
 * child process. Reconnects with back-off; after `reconnect.attempts` failures in a row, or one that no retry can
 * mend, it errors with a `MillraceError`. It never completes.
 */
export const mcpTools = (options: McpServer): Observable<readonly Tool[]> => {
  const server = serverOf('mcpTools()', options);
  const { attempts } = server.reconnect;
  return defer(() => {
    // Tools that wait for a call keep them, and run over the next connection.
    const [link, admission] = [createLink(server), createAdmission(server)];
    return toolLists$(server, link, admission).pipe(
      retry({
        resetOnSuccess: true,
        delay: (error: unknown, failures) =>
          failures >= attempts || !(isMillraceError(error) && error.retryable)
            ? stop$(error)
            : timer(backOff(server, failures)),
      }),
    );
  }).pipe(
    tap(({ warnings }) => warnings.forEach((warning) => server.onWarning?.(warning))),
    map(({ tools }) => tools),
  );
};

/** Of a type of its own: errors of a stream are `unknown`. */
const stop$ = (error: unknown): Observable<never> =>
  throwError(() => (error instanceof Error ? error : new Error(String(error))));

/** The lists of the connections of a link. Errors when no connection can be made. */
export const toolLists$ = (
  server: Server,
  link: Link,
  admission: Admission,
): Observable<ToolList> => {
  const { connectMs } = server.timeouts;
  const late = (): MillraceError =>
    new MillraceError(
      'timeout',
      `The MCP server '${server.name}' listed no tools within ${connectMs} ms. If it only starts slowly, raise 'timeouts.connectMs'.`,
    );
  return link.connections$.pipe(
    switchMap((connection) =>
      listed$(connection, connectMs).pipe(
        switchMap(({ version, ...listed }) =>
          toolsOf$(server, link, connection, admission, listed).pipe(
            // After the list has reached the calls that wait for it.
            concatMap((list) =>
              concat(
                of(list),
                defer(() => done$(() => connection.listed$.next(version))),
              ),
            ),
          ),
        ),
      ),
    ),
    timeout({ first: connectMs, with: () => stop$(late()) }),
  );
};

const done$ = (act: () => void): Observable<never> => {
  act();
  return EMPTY;
};

interface Listed {
  readonly tools: readonly ListedTool[];
  readonly leftOut: readonly string[];
}

/** Lists the tools now and after each change: one list at a time, with a gap in between. */
const listed$ = (
  { version$, request$, leftOut }: Connection,
  connectMs: number,
): Observable<Listed & { readonly version: number }> =>
  afterEach$(version$, () =>
    request$<{ readonly tools: readonly ListedTool[] }>('to list its tools', (client, options) =>
      client.getServerCapabilities()?.tools === undefined
        ? Promise.resolve({ tools: [] })
        : client.listTools(undefined, { ...options, timeout: connectMs, cacheMode: 'bypass' }),
    ).pipe(map(({ tools }) => ({ tools, leftOut: leftOut() }))),
  ).pipe(map(([listed, version]) => ({ ...listed, version })));

/** Reads now and after each change of a version: one reading at a time, with a gap in between. */
export const afterEach$ = <T>(
  version$: BehaviorSubject<number>,
  read: () => Observable<T>,
): Observable<readonly [T, number]> =>
  defer(() => {
    let seen = -1;
    const read$ = defer(() => {
      seen = version$.value;
      return read().pipe(map((value) => [value, seen] as const));
    });
    const changed$ = version$.pipe(
      filter((version) => version !== seen),
      take(1),
      delay(listGapMs),
    );
    return read$.pipe(repeat({ delay: () => changed$ }));
  });

/** Emits the tools without changed ones, and again after each change that is accepted. */
const toolsOf$ = (
  server: Server,
  link: Link,
  { client }: Connection,
  admission: Admission,
  { tools: all, leftOut }: Listed,
): Observable<ToolList> => {
  const wanted = distinct(all.filter(({ name }) => isWanted(server, name)));
  const offered = client.getServerCapabilities();
  return compiled$(admission, wanted.slice(0, server.limits.tools)).pipe(
    switchMap(() =>
      accepted$(server, admission.changesIn(wanted)).pipe(
        scan((reasons: readonly string[], decided) => {
          if (typeof decided === 'string') return [...reasons, decided];
          admission.accept(decided.after);
          return reasons;
        }, []),
        startWith<readonly string[]>([]),
        map((reasons) =>
          toolListOf(
            server,
            link,
            admission,
            { tools: wanted, leftOut: [...leftOut, ...reasons] },
            offered,
          ),
        ),
      ),
    ),
  );
};

const isWanted = ({ include, exclude = [] }: Server, name: string): boolean =>
  (include === undefined || include.includes(name)) && !exclude.includes(name);

/** The first tool of each name: a server may list a name twice. */
const distinct = (listed: readonly ListedTool[]): readonly ListedTool[] =>
  [...new Map(listed.toReversed().map((tool) => [tool.name, tool])).values()].toReversed();

/** Compiles one schema after another, and lets other work of the process run in between. */
const compiled$ = (
  admission: Admission,
  listed: readonly ListedTool[],
): Observable<readonly unknown[]> =>
  from(listed).pipe(
    concatMap((tool) => scheduled([tool], asyncScheduler)),
    tap((tool) => admission.inputOf(tool)),
    toArray(),
  );

/** The changes that are accepted, and why a decider failed: that costs its tool only. */
const accepted$ = (
  server: Server,
  changes: readonly ToolChange[],
): Observable<ToolChange | string> => {
  const { onChanged } = server;
  return onChanged === undefined
    ? EMPTY
    : from(changes).pipe(
        mergeMap((change) =>
          defer(() => {
            const verdict = onChanged(change);
            return typeof verdict === 'boolean' ? of(verdict) : from(verdict);
          }).pipe(
            take(1),
            filter((verdict) => verdict),
            map(() => change),
            catchError((cause: unknown) => {
              const why = messageOf(cause);
              return of(`'onChanged' failed for '${nameShownTo(server, change.tool)}': ${why}`);
            }),
          ),
        ),
      );
};

const toolListOf = (
  server: Server,
  link: Link,
  admission: Admission,
  { tools: wanted, leftOut }: Listed,
  offered: Offered,
): ToolList => {
  const { name: owner, limits } = server;
  const warnings = leftOut.map((why) => `The MCP server '${owner}': ${shownTo(server, why, 300)}.`);
  const pages: ToolPage[] = [];
  const byName = new Map<string, Tool>();
  const add = (tool: Tool, listedAs?: string): boolean => {
    const isFree = admission.owns(tool.name, listedAs) && !byName.has(tool.name);
    if (isFree) byName.set(tool.name, tool);
    else {
      warnings.push(
        `'${nameShownTo(server, tool.name)}' of the MCP server '${owner}' is left out: the name is taken. Choose the tool you need with 'include' or 'exclude', and restart.`,
      );
    }
    return isFree;
  };
  admission.further(offered, () => furtherTools(server, link, offered)).forEach((it) => add(it));
  for (const listed of wanted.slice(0, limits.tools)) {
    const input = admission.inputOf(listed);
    const about = `'${nameShownTo(server, listed.name)}' of the MCP server '${owner}'`;
    if (typeof input === 'string')
      warnings.push(`${about} is left out: ${shownTo(server, input, 300)}.`);
    else if (!admission.isAccepted(listed)) {
      warnings.push(`${about} is left out: its description or schema changed. ${fix}`);
    } else {
      const made = admission.made(listed, offered, (isCurrent) =>
        toolOf(server, link, listed, input, offered, isCurrent),
      );
      const uri = pageOfTool(listed._meta);
      if (add(made, listed.name) && uri !== undefined) pages.push({ tool: made.name, uri });
    }
  }
  if (wanted.length > limits.tools) {
    warnings.push(
      `The MCP server '${owner}' has ${wanted.length} tools; ${limits.tools} are used. Choose with 'include', or raise 'limits.tools'.`,
    );
  }
  return { tools: [...byName.values()], pages, warnings };
};

const fix = "Accept changes with 'onChanged', or restart to trust the server as it is now.";
