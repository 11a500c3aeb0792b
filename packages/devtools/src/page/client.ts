// The server of the page, as the page uses it.
import {
  catchError,
  concat,
  defer,
  EMPTY,
  finalize,
  from,
  ignoreElements,
  map,
  mergeMap,
  Observable,
  of,
  Subject,
  tap,
  throwError,
} from 'rxjs';
import { fieldsOf, isRecord, stringOf } from './model/read-event.js';
import type { Breakpoint, Exchange, FeedLine, ForkRequest, Found, HoldAction } from './protocol.js';

/** News of the feed. */
export type FeedNews =
  | { readonly type: 'line'; readonly line: FeedLine }
  /** The connection was lost, and is tried again. */
  | { readonly type: 'lost' }
  /** The server does not accept the token. */
  | { readonly type: 'refused' };

export interface Client {
  /** The feed, over lost connections. Completes if the token is refused. */
  readonly feed$: Observable<FeedNews>;
  /** Asks for the log of a call, which comes with the feed. Completes. */
  readonly open$: (id: string) => Observable<never>;
  /** Emits the ids of the calls whose log contains the text, of those that were written until a time. */
  readonly search$: (text: string, until?: number) => Observable<Found>;
  /** Asks for older calls, which come with the feed. Emits whether there may be more. */
  readonly older$: Observable<boolean>;
  /** Emits what was sent to the provider for a request, by the id of its mark. */
  readonly exchanges$: (id: string) => Observable<readonly Exchange[]>;
  readonly setBreakpoints$: (breakpoints: readonly Breakpoint[]) => Observable<never>;
  readonly act$: (holdId: string, action: HoldAction) => Observable<never>;
  /** Emits the id of the new call. */
  readonly fork$: (id: string, request: ForkRequest) => Observable<string>;
  readonly interrupt$: (id: string) => Observable<never>;
  /** The hash of an address that shows a call, also in another tab. */
  readonly linkTo: (id: string) => string;
}

/** The surroundings of the page. */
export interface ClientOptions {
  readonly token: string;
  /** The address of the requests, with a slash at its end. Default: `api/`. */
  readonly api?: string | undefined;
  /** Completes when a lost connection should be tried again, after so many failures. */
  readonly wait$: (failures: number) => Observable<unknown>;
}

class Refused extends Error {}

export const createClient = ({ token, api = 'api/', wait$ }: ClientOptions): Client => {
  /** Sends a request, and reads its response. Unsubscribing ends both. */
  const request$ = <T>(
    path: string,
    read$: (response: Response) => Observable<T>,
    method = 'GET',
    body?: object,
  ): Observable<T> =>
    defer(() => {
      const leaving = new AbortController();
      const response = fetch(api + path, {
        method,
        cache: 'no-store',
        signal: leaving.signal,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return from(response).pipe(
        catchError(noAnswer),
        mergeMap(accepted$),
        mergeMap(read$),
        finalize(() => leaving.abort()),
      );
    });
  const inOrder$ = createQueue();
  const done$ = (path: string, method: string, body?: object): Observable<never> =>
    request$(path, () => EMPTY, method, body);
  return {
    feed$: followed$(request$('feed', lines$), wait$),
    open$: (id) => done$(`calls/${encodeURIComponent(id)}`, 'GET'),
    search$: (text, writtenUntil) =>
      request$(
        `search?q=${encodeURIComponent(text)}${writtenUntil === undefined ? '' : `&until=${writtenUntil}`}`,
        json$,
      ).pipe(
        map((body) => {
          const { ids, until } = fieldsOf(body);
          return {
            ids: Array.isArray(ids) ? ids.map(stringOf) : [],
            ...(typeof until === 'number' && { until }),
          };
        }),
      ),
    older$: request$('older', json$, 'POST', {}).pipe(
      map((body) => fieldsOf(body)['isMore'] === true),
    ),
    exchanges$: (id) =>
      request$(`exchanges/${encodeURIComponent(id)}`, json$).pipe(
        map((body) => (Array.isArray(body) ? body.filter(isExchange) : [])),
      ),
    setBreakpoints$: (breakpoints) => inOrder$(done$('breakpoints', 'PUT', breakpoints)),
    act$: (holdId, action) =>
      inOrder$(done$(`holds/${encodeURIComponent(holdId)}`, 'POST', action)),
    fork$: (id, body) =>
      request$(`calls/${encodeURIComponent(id)}/fork`, json$, 'POST', body).pipe(
        map((answer) => stringOf(fieldsOf(answer)['id'])),
      ),
    interrupt$: (id) => done$(`calls/${encodeURIComponent(id)}/interrupt`, 'POST', {}),
    linkTo: (id) => hashOf(id, token),
  };
};

/** The feed, over lost connections. */
const followed$ = (
  line$: Observable<FeedLine>,
  wait$: ClientOptions['wait$'],
): Observable<FeedNews> => {
  const follow$ = (failures: number): Observable<FeedNews> =>
    defer(() => {
      let failed = failures;
      const ended$ = throwError(() => new Error('The connection was lost.'));
      return concat(
        line$.pipe(
          tap(() => (failed = 0)),
          map((line): FeedNews => ({ type: 'line', line })),
        ),
        ended$,
      ).pipe(
        catchError((error: unknown) =>
          error instanceof Refused
            ? of({ type: 'refused' } as const)
            : concat(
                of({ type: 'lost' } as const),
                wait$(failed).pipe(ignoreElements()),
                defer(() => follow$(failed + 1)),
              ),
        ),
      );
    });
  return follow$(0);
};

const isExchange = (value: unknown): value is Exchange =>
  isRecord(value) && typeof value['body'] === 'string';

/** Sends each request when those before it have been answered, or have failed: a breakpoint is set before a call continues. */
const createQueue = () => {
  let last$: Observable<never> = EMPTY;
  return (request$: Observable<never>): Observable<never> =>
    defer(() => {
      const answered$ = new Subject<never>();
      const own$ = concat(last$, request$).pipe(tap({ finalize: () => answered$.complete() }));
      last$ = answered$;
      return own$;
    });
};

/** Browsers give a reason only to their console. */
const noAnswer = () =>
  throwError(() => new Error('The program does not answer: this may not have arrived. Try again.'));

const json$ = (response: Response): Observable<unknown> => from(response.json());

/** Passes a response on, or errors with the sentence of the server. */
const accepted$ = (response: Response): Observable<Response> => {
  const { ok, status } = response;
  if (ok) return of(response);
  if (status === 401) return throwError(() => new Refused('The server does not accept the token.'));
  return from(response.json().catch(() => ({}))).pipe(
    map((body: unknown) => {
      throw new Error(stringOf(fieldsOf(body)['error']) || `The server answered ${status}.`);
    }),
  );
};

/** The lines of a feed. */
const lines$ = ({ body }: Response): Observable<FeedLine> =>
  new Observable((subscriber) => {
    if (body === null) {
      subscriber.complete();
      return undefined;
    }
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    // A long line comes in many pieces: they are joined when it is complete.
    let rest: string[] = [];
    const take = (text: string): void => {
      if (!text.includes('\n')) {
        rest.push(text);
        return;
      }
      const lines = (rest.join('') + text).split('\n');
      rest = lines.splice(-1);
      for (const line of lines) if (line !== '') subscriber.next(parsedLine(line));
    };
    const fail = (error: unknown): void => {
      subscriber.error(error);
    };
    const read = (): void => {
      if (subscriber.closed) return;
      reader
        .read()
        .then(({ done, value }) => {
          if (done) {
            subscriber.complete();
            return;
          }
          take(value);
          read();
        })
        .catch(fail);
    };
    read();
    return undefined;
  });

const parsedLine = (text: string): FeedLine => {
  const line: unknown = JSON.parse(text);
  if (!isLine(line)) throw new Error('This is no line of a feed.');
  return line;
};

const isLine = (value: unknown): value is FeedLine =>
  isRecord(value) && typeof value['line'] === 'string';

// ---------------------------------------------------------------- the token

const tokenKey = 'millrace-devtools-token';

/**
 * The token of the address, `#token=…`, or the one of this tab. It is removed from the address bar and kept as long as
 * the tab is open. Empty without one.
 */
export const takeToken = (
  { hash, pathname, search }: Pick<Location, 'hash' | 'pathname' | 'search'>,
  history: Pick<History, 'replaceState'>,
  storage: Pick<Storage, 'getItem' | 'setItem'>,
): string => {
  const given = new URLSearchParams(hash.slice(1)).get('token');
  if (given === null) return storage.getItem(tokenKey) ?? '';
  storage.setItem(tokenKey, given);
  history.replaceState(null, '', pathname + search + hashOf(linkedCall(hash)));
  return given;
};

/** The call that an address shows, `#call=…`. */
export const linkedCall = (hash: string): string | undefined =>
  new URLSearchParams(hash.slice(1)).get('call') ?? undefined;

/** The hash of an address that shows a call. With a token, other tabs can open it. */
export const hashOf = (call: string | undefined, token?: string): string => {
  const fields = { ...(token !== undefined && { token }), ...(call !== undefined && { call }) };
  const hash = new URLSearchParams(fields).toString();
  return hash === '' ? '' : `#${hash}`;
};
