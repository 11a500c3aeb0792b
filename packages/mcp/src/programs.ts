import { MillraceError, type Suspension, type ToolOutput } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  asyncScheduler,
  BehaviorSubject,
  catchError,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  map,
  merge,
  NEVER,
  noop,
  type Observable,
  repeat,
  share,
  skip,
  switchMap,
  take,
  tap,
  throwError,
  timer,
  using,
} from 'rxjs';
import { type Connection, isConnection, type Link, listening$ } from './connection.js';
import { failureOf } from './failure.js';
import { type McpResource, partsOf } from './content.js';
import { rawOf } from './message-reader.js';
import { backOff, type Server } from './server-options.js';
import { cancelTask$, resumedTask$, storedTask } from './tasks.js';
import { afterEach$ } from './tool-list.js';

/** An argument that the user is typing: of a prompt or of a resource template. */
export type CompletionRequest = {
  /** The name of the argument, and the text typed so far. */
  readonly argument: string;
  readonly value: string;
  /** The arguments that are already set. */
  readonly known?: Readonly<Record<string, string>>;
} & ({ readonly prompt: string } | { readonly resourceTemplate: string });

export interface Completion {
  readonly values: readonly string[];
  readonly total?: number;
  readonly hasMore: boolean;
}

/** Requests of an application to servers. All are cold, and keep the server connected while they are subscribed. */
export interface McpRequests {
  /**
   * Reads a resource of a server now and after each change. Completes after the first read if the server does not announce
   * changes. Read pages of MCP Apps (`ui://`) like this, and show them in a sandbox.
   */
  readonly resource$: (server: string, uri: string) => Observable<readonly McpResource[]>;
  /** Emits the suggested values of an argument. */
  readonly complete$: (server: string, request: CompletionRequest) => Observable<Completion>;
  /**
   * Waits for the task of a call that was suspended (`timeouts.suspendMs`), also in another process, and emits the output for
   * `toolResults`. Unsubscribing leaves the task alone.
   */
  readonly taskResult$: (suspension: Suspension) => Observable<ToolOutput>;
  /** Cancels the task of a suspended call, and completes. */
  readonly cancelTask$: (suspension: Suspension) => Observable<never>;
}

interface Linked {
  readonly server: Server;
  readonly link: Link;
}

export const requestsOf = (linked: readonly Linked[], held$: Observable<unknown>): McpRequests => {
  const with$ = <T>(name: string, use: (it: Linked) => Observable<T>): Observable<T> =>
    defer(() => {
      const it = linked.find(({ server }) => server.name === name);
      if (it === undefined) throw new MillraceError('config', `No MCP server is named '${name}'.`);
      return using(
        () => held$.subscribe(),
        () => connected$(it.link).pipe(switchMap(() => use(it))),
      );
    });
  const ofTask$ = <T>(
    suspension: Suspension,
    use: (it: Linked, task: NonNullable<ReturnType<typeof storedTask>>) => Observable<T>,
  ): Observable<T> =>
    defer(() => {
      const task = storedTask(suspension);
      if (task === undefined) {
        throw new MillraceError(
          'config',
          'The suspension does not wait for a task of an MCP server.',
        );
      }
      return with$(task.server, (it) => use(it, task));
    });
  return {
    resource$: (name, uri) => with$(name, (it) => resource$(it, uri)),
    complete$: (name, request) => with$(name, ({ link }) => completion$(link, request)),
    taskResult$: (suspension) =>
      ofTask$(suspension, ({ server, link }, task) =>
        resumedTask$(server, link, task, asyncScheduler),
      ),
    cancelTask$: (suspension) =>
      ofTask$(suspension, ({ link }, { taskId }) => cancelTask$(link, taskId)).pipe(
        switchMap(() => EMPTY),
      ),
  };
};

/** Emits once the server is connected. Errors if it cannot be. */
const connected$ = ({ current$ }: Link): Observable<unknown> =>
  current$.pipe(
    filter((it) => it !== undefined),
    take(1),
    map((it) => {
      if (it instanceof MillraceError) throw it;
      return it;
    }),
  );

// ---------------------------------------------------------------- resources

const resource$ = ({ server, link }: Linked, uri: string): Observable<readonly McpResource[]> => {
  const read$ = link
    .request$('to read a resource', (client, options) =>
      client.readResource({ uri }, { ...options, cacheMode: 'bypass' }),
    )
    .pipe(map((result) => partsOf(rawOf(result))));
  const { value } = link.current$;
  const canFollow =
    isConnection(value) && value.client.getServerCapabilities()?.resources?.subscribe === true;
  if (!canFollow) return read$;
  return link.current$.pipe(
    filter(isConnection),
    switchMap((connection) => followed$(server, connection, uri, read$)),
  );
};

const followed$ = <T>(
  server: Server,
  connection: Connection,
  uri: string,
  read$: Observable<T>,
): Observable<T> =>
  defer(() => {
    const version$ = new BehaviorSubject(0);
    const changes$ = connection.announced.updated$.pipe(
      filter((changed) => changed === uri),
      map(() => version$.value + 1),
    );
    const parts$ = using(
      () => changes$.subscribe(version$),
      () => afterEach$(version$, () => read$),
    );
    const subscription$ = sharedSubscription$(server, connection, uri);
    // Read again: a change before the subscription was open was not announced.
    const missed$ = subscription$.pipe(
      tap(() => version$.next(version$.value + 1)),
      ignoreElements(),
    );
    return merge(missed$, parts$.pipe(map(([parts]) => parts)));
  });

const subscriptions = new WeakMap<Connection, Map<string, Observable<unknown>>>();

/** A server has one subscription for each resource of a connection, however many follow it: the end of one would end all. */
const sharedSubscription$ = (
  server: Server,
  connection: Connection,
  uri: string,
): Observable<unknown> => {
  const known = subscriptions.get(connection) ?? new Map<string, Observable<unknown>>();
  subscriptions.set(connection, known);
  const subscription$ =
    known.get(uri) ??
    subscribed$(server, connection, uri).pipe(
      finalize(() => known.delete(uri)),
      share(),
    );
  known.set(uri, subscription$);
  return subscription$;
};

/** Asks the server to announce changes of a resource, until it is unsubscribed from. Emits when it has asked again. */
const subscribed$ = (server: Server, connection: Connection, uri: string): Observable<unknown> => {
  const { client, request$, isLost } = connection;
  const doing = 'to announce changes of a resource';
  if (client.getProtocolEra() === 'modern') {
    const { connectMs } = server.timeouts;
    return listening$(client, { resourceSubscriptions: [uri] }, connectMs).pipe(
      catchError((cause: unknown) => throwError(() => failureOf(server, doing, cause))),
      repeat({ delay: () => timer(backOff(server, 1)) }),
      skip(1),
    );
  }
  return request$(doing, (_client, options) => client.subscribeResource({ uri }, options)).pipe(
    switchMap(() =>
      using(
        () => ({
          unsubscribe: () => {
            if (!isLost()) void client.unsubscribeResource({ uri }).catch(noop);
          },
        }),
        () => NEVER,
      ),
    ),
  );
};

// ---------------------------------------------------------------- completion

const completion$ = (link: Link, request: CompletionRequest): Observable<Completion> => {
  const { argument: name, value, known = {} } = request;
  const params = {
    ref:
      'prompt' in request
        ? { type: 'ref/prompt' as const, name: request.prompt }
        : { type: 'ref/resource' as const, uri: request.resourceTemplate },
    argument: { name, value },
    context: { arguments: { ...known } },
  };
  return link
    .request$<unknown>('to complete an argument', (client, options) =>
      client.getServerCapabilities()?.completions === undefined
        ? Promise.resolve({})
        : client.complete(params, options).then(rawOf),
    )
    .pipe(map(completionIn));
};

const completionIn = (raw: unknown): Completion => {
  const completion = isRecord(raw) ? raw['completion'] : undefined;
  const { values, total, hasMore } = isRecord(completion) ? completion : {};
  return {
    values: (Array.isArray(values) ? values : []).filter((it) => typeof it === 'string'),
    hasMore: hasMore === true,
    ...(typeof total === 'number' && { total }),
  };
};
