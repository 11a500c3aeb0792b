import { MillraceError } from 'millrace';
import {
  type Client,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client';
import {
  asyncScheduler,
  BehaviorSubject,
  catchError,
  defer,
  EMPTY,
  filter,
  finalize,
  firstValueFrom,
  from,
  isObservable,
  lastValueFrom,
  map,
  merge,
  noop,
  Observable,
  of,
  race,
  repeat,
  retry,
  skip,
  Subscription,
  switchMap,
  take,
  tap,
  throwError,
  timeout,
  timer,
} from 'rxjs';
import { type Announced, announcements, clientOf, type RequestOf, rootsOf$ } from './client.js';
import { failureOf, isConnectionLost, SessionLost, sessionLostBy } from './failure.js';
import { overHttp, tooLong } from './http.js';
import {
  createEnter,
  createMessageReader,
  type Enter,
  type MessageReader,
} from './message-reader.js';
import { backOff, type Server } from './server-options.js';
import { createOpenRequests, type OpenRequests } from './open-requests.js';
import { overStdio } from './stdio.js';

/** A request to a server, with the options that the SDK needs. */
export type Ask<T> = (client: Client, options: RequestOptions) => Promise<T>;

export interface Connection extends Pick<MessageReader, 'leftOut'> {
  readonly client: Client;
  /** Counts work of the server as an open request of an async context while it is subscribed to. Never emits. */
  readonly held$: (enter: Enter) => Observable<never>;
  readonly announced: Announced;
  /** Counts the announced changes of the tool list, and how many of them the list contains. */
  readonly version$: BehaviorSubject<number>;
  readonly listed$: BehaviorSubject<number>;
  /** Whether its session is lost, so that new requests need another one. */
  readonly isLost: () => boolean;
  /** Performs a request. Unsubscribing cancels it. A failure that means that the connection is lost ends it. */
  readonly request$: <T>(doing: string, ask: Ask<T>) => Observable<T>;
}

export interface RequestOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
}

/** The longest delay of a timer, to disable the time-outs of the SDK: Millrace has its own. */
const never = 2 ** 31 - 1;
/** The number of consecutive invalid messages that ends the connection. */
const mostInvalid = 100;
const goodbyeMs = 1_000;

/** Connects to a server: emits one connection, and errors when it is lost. Unsubscribing ends it, and a child process. */
export const connect$ = (server: Server, ofProgram = createEnter()): Observable<Connection> =>
  new Observable((subscriber) => {
    const { name, stdio, http, timeouts, limits } = server;
    const abort = new AbortController();
    const following = new Subscription();
    const version$ = new BehaviorSubject(0);
    const announced = announcements(() => version$.next(version$.value + 1));
    const requests = createOpenRequests();
    const { during$, idle$ } = requests;
    const reader = createMessageReader(ofProgram);
    const client = clientOf(server, announced, owners(requests, reader));
    let isPartial = false;
    const end = (error: MillraceError): void => {
      isPartial ||= error instanceof SessionLost;
      subscriber.error(error);
    };
    const lost = (why: string): void =>
      end(new MillraceError('connection', `The MCP server '${name}' ${why}.`));
    const tooMuch = (): void => end(tooLong(server));
    const transport =
      stdio === undefined
        ? overHttp(server, http, reader, end)
        : overStdio(stdio, limits.message, reader, tooMuch);
    const validity = checkedErrors(() => lost('sent too many messages that are not valid'));
    transport.onerror = validity.failed;
    const request$: Connection['request$'] = (doing, ask) =>
      during$(requested$(client, ask)).pipe(
        tap(validity.answered),
        catchError((cause: unknown) => {
          const gone = sessionLostBy(server, doing, cause, transport.sessionId !== undefined);
          if (gone !== undefined) end(gone);
          else if (isConnectionLost(cause, http !== undefined)) {
            isPartial ||= http !== undefined;
            lost('closed the connection');
          }
          throw gone ?? failureOf(server, doing, cause);
        }),
      );
    client.connect(transport, { signal: abort.signal, timeout: timeouts.connectMs }).then(
      () => {
        client.onclose = () => lost('closed the connection');
        following.add(announceRoots(server, client, end));
        following.add(keepSubscribed(server, client, announced.toolsChanged));
        const listed$ = new BehaviorSubject(-1);
        const leftOut = (): readonly string[] => reader.leftOut();
        const isLost = (): boolean => subscriber.closed;
        const own = { client, announced, version$, listed$, leftOut, isLost };
        const held$ = (enter: Enter): Observable<never> =>
          during$(new Observable<never>(() => reader.hold(enter)));
        subscriber.next({ ...own, request$, held$ });
      },
      (cause: unknown) => end(failureOf(server, 'to connect', cause)),
    );
    return () => {
      client.onclose = noop;
      following.unsubscribe();
      abort.abort();
      // Other requests fail in the same way, or may still be answered.
      void firstValueFrom(isPartial ? idle$ : of(undefined)).then(() =>
        closed(client, transport, isPartial),
      );
    };
  });

const owners =
  ({ over$ }: OpenRequests, reader: MessageReader): RequestOf =>
  (id) => ({ enter$: reader.contextOf(id), over$: merge(over$, reader.over$(id)) });

/** Counts messages that are not valid, in a row. Other errors of a transport are failures of single requests and streams. */
const checkedErrors = (
  exceeded: () => void,
): { readonly failed: (error: unknown) => void; readonly answered: () => void } => {
  let invalid = 0;
  return {
    failed: (error) => {
      invalid += error instanceof Error && /^\$?(ZodError|SyntaxError)$/.test(error.name) ? 1 : 0;
      if (invalid > mostInvalid) exceeded();
    },
    answered: () => {
      invalid = 0;
    },
  };
};

const requested$ = <T>(client: Client, ask: Ask<T>): Observable<T> =>
  new Observable<T>((subscriber) => {
    const abort = new AbortController();
    let isAnswered = false;
    ask(client, { signal: abort.signal, timeout: never }).then(
      (value) => {
        isAnswered = true;
        subscriber.next(value);
        subscriber.complete();
      },
      (cause: unknown) => subscriber.error(cause),
    );
    // Abort only before the answer, which may be a stream of changes that the signal would end.
    return () => {
      if (!isAnswered) abort.abort();
    };
  });

const announceRoots = (
  server: Server,
  client: Client,
  end: (error: MillraceError) => void,
): Subscription => {
  const { roots } = server;
  const changed$ = isObservable(roots) ? rootsOf$(server).pipe(skip(1)) : EMPTY;
  return changed$.subscribe({
    next: () =>
      void client.notification({ method: 'notifications/roots/list_changed' }).catch(noop),
    error: (cause: unknown) => end(failureOf(server, 'to announce its roots', cause)),
  });
};

/** Since 2026-07-28, changes are announced on a stream of their own: it is opened again, and the list is read again, if it ends. */
const keepSubscribed = (server: Server, client: Client, changed: () => void): Subscription => {
  const announces = client.getServerCapabilities()?.tools?.listChanged === true;
  if (client.getProtocolEra() !== 'modern' || !announces) return Subscription.EMPTY;
  const first = client.autoOpenedSubscription;
  const further$ = listening$(client, { toolsListChanged: true }, server.timeouts.connectMs).pipe(
    tap(changed),
    retry({ delay: (_error, failures) => timer(backOff(server, failures)) }),
    repeat({ delay: () => timer(backOff(server, 1)) }),
  );
  return defer(() => first?.closed ?? of(undefined))
    .pipe(
      switchMap(() => timer(backOff(server, 1))),
      switchMap(() => further$),
    )
    .subscribe();
};

/** A stream of announcements since 2026-07-28: emits when it is open, and completes when it ends. Unsubscribing closes it. */
export const listening$ = (
  client: Client,
  filterOf: Parameters<Client['listen']>[0],
  ms: number,
): Observable<unknown> =>
  new Observable((subscriber) => {
    const abort = new AbortController();
    client
      .listen(filterOf, { timeout: ms, signal: abort.signal })
      .then((subscription) => {
        subscriber.next(subscription);
        return subscription.closed;
      })
      .then(
        () => subscriber.complete(),
        (cause: unknown) => subscriber.error(cause),
      );
    return () => abort.abort();
  });

/** Ends the session, so an HTTP server can free it. */
const closed = (client: Client, transport: Transport, isLost: boolean): Promise<void> => {
  const goodbye$ =
    transport instanceof StreamableHTTPClientTransport && !isLost
      ? from(transport.terminateSession()).pipe(
          timeout(goodbyeMs),
          catchError(() => EMPTY),
        )
      : EMPTY;
  return (
    lastValueFrom(goodbye$, { defaultValue: undefined })
      .then(() => client.close())
      // A client that still negotiates the version does not own the transport yet.
      .finally(() => transport.close())
      .catch(noop)
  );
};

// ---------------------------------------------------------------- link

/** The connections to a server, one after the other. Tools keep the link, and always use its current connection. */
export interface Link {
  /** The current connection, or the reason for its absence. */
  readonly current$: BehaviorSubject<Connection | MillraceError | undefined>;
  /** Emits the current connection, and further ones after it was lost. Errors if a connection cannot be made. */
  readonly connections$: Observable<Connection>;
  /**
   * Performs a request on the current connection, and once more on the next one if the session was lost before the
   * server did anything.
   */
  readonly request$: Connection['request$'];
}

export const isConnection = (it: Link['current$']['value']): it is Connection =>
  it !== undefined && !(it instanceof MillraceError);

/** How long a request waits for a list of tools, in milliseconds. */
export const settleMs = 2_000;

/** Sessions that may be lost one after the other, with no request answered, before the server counts as failed. */
const mostLost = 2;
/** A session that is lost sooner after its start, in milliseconds, counts together with the one before. */
const leastLifeMs = 1_000;

export const createLink = (server: Server): Link => {
  const current$ = new BehaviorSubject<Connection | MillraceError | undefined>(undefined);
  let losses = 0;
  let since = 0;
  const renewed$ = (error: unknown): Observable<0> => {
    // A session that has lasted does not count together with the one before.
    if (Math.abs(asyncScheduler.now() - since) > Math.max(leastLifeMs, backOff(server, 1)))
      losses = 0;
    losses += error instanceof SessionLost ? 1 : 0;
    if (error instanceof SessionLost && losses < mostLost) return of(0);
    losses = 0;
    current$.next(failureOf(server, 'to connect', error));
    return throwError(() => (error instanceof Error ? error : new Error(String(error))));
  };
  const next$ = (before: Connection | undefined): Observable<Connection> =>
    current$.pipe(
      filter((it) => it !== before && it !== undefined),
      take(1),
      map((it) => {
        if (isConnection(it)) return it;
        throw it ?? notConnected(server, 'to connect');
      }),
    );
  const nextListed$ = (before: Connection): Observable<Connection> =>
    next$(before).pipe(
      switchMap((it) => {
        const lost$ = current$.pipe(filter((now) => now !== it));
        return race(listed$(it), lost$.pipe(switchMap(() => nextListed$(it))));
      }),
      take(1),
    );
  const on$ = <T>(connection: Connection, doing: string, ask: Ask<T>): Observable<T> =>
    connection.request$(doing, ask).pipe(tap(() => (losses = 0)));
  return {
    current$,
    connections$: connect$(server).pipe(
      tap((connection) => {
        since = asyncScheduler.now();
        current$.next(connection);
      }),
      retry({ delay: renewed$ }),
      finalize(() => {
        if (!(current$.value instanceof MillraceError)) current$.next(undefined);
      }),
    ),
    request$: (doing, ask) =>
      defer(() => {
        const { value } = current$;
        if (!isConnection(value)) return throwError(() => value ?? notConnected(server, doing));
        const again$ = nextListed$(value).pipe(switchMap((it) => on$(it, doing, ask)));
        if (value.isLost()) return again$;
        return on$(value, doing, ask).pipe(
          catchError((error: unknown) => {
            if (error instanceof SessionLost && error.isUntouched) return again$;
            throw error;
          }),
        );
      }),
  };
};

/** Emits the connection once its tools are listed: what is sent again is for the server as it is now. */
const listed$ = (connection: Connection): Observable<Connection> =>
  connection.listed$.pipe(
    filter((version) => version >= 0),
    take(1),
    timeout({ first: settleMs, with: () => of(0) }),
    map(() => connection),
  );

const notConnected = ({ name }: Server, doing: string): MillraceError =>
  new MillraceError('connection', `The MCP server '${name}' failed ${doing}: it is not connected.`);
