import { MillraceError } from 'millrace';
import { isRecord } from 'millrace/values';
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/client';
import {
  concatMap,
  defer,
  EMPTY,
  every,
  filter,
  from,
  map,
  type Observable,
  of,
  race,
  ReplaySubject,
  type SchedulerLike,
  switchMap,
  take,
  throwError,
  timer,
  using,
} from 'rxjs';
import { opened$ } from './client.js';
import { type Ask, isConnection, type Link } from './connection.js';
import type { Server } from './server-options.js';

/** Pages that a server wants the user to complete before it answers a request. */
class RequiredPages {
  readonly pages: readonly Page[];

  constructor(pages: readonly Page[]) {
    this.pages = pages;
  }
}

interface Page {
  readonly url: unknown;
  readonly message: unknown;
  readonly id: unknown;
}

interface Doing {
  readonly doing: string;
  readonly scheduler: SchedulerLike;
  readonly signal: AbortSignal;
}

const urlElicitationRequired: number = ProtocolErrorCode.UrlElicitationRequired;

/** Maximum wait for the completion of a page, which a server need not announce. */
const completeMs = 30_000;
/** The maximum number of pages that one request may ask for. */
const mostPages = 5;

/**
 * Performs a request. If the server first wants the user to open pages (error -32042), asks the user, waits until they are
 * completed, and repeats the request once.
 */
export const withPages$ = <T>(
  server: Server,
  link: Link,
  { doing, scheduler, signal }: Doing,
  ask: Ask<T>,
): Observable<T> => {
  if (server.onElicitUrl === undefined) return link.request$(doing, ask);
  return link
    .request$<T | RequiredPages>(doing, (client, options) =>
      ask(client, options).catch((cause: unknown) => {
        const pages = pagesIn(cause);
        if (pages.length === 0) throw cause;
        return new RequiredPages(pages);
      }),
    )
    .pipe(
      switchMap((result) => {
        if (!(result instanceof RequiredPages)) return of(result);
        return completed$(server, link, result.pages, scheduler, signal).pipe(
          switchMap((areOpen) =>
            areOpen ? link.request$(doing, ask) : throwError(() => notOpened(server, doing)),
          ),
        );
      }),
    );
};

const pagesIn = (cause: unknown): readonly Page[] => {
  if (!(cause instanceof ProtocolError) || cause.code !== urlElicitationRequired) {
    return [];
  }
  const pages = isRecord(cause.data) ? cause.data['elicitations'] : undefined;
  return (Array.isArray(pages) ? pages : [])
    .filter(isRecord)
    .slice(0, mostPages)
    .map(({ url, message, elicitationId: id }) => ({ url, message, id }));
};

/** Opens one page after the other. Emits whether the user has opened all of them, once they are completed. */
const completed$ = (
  server: Server,
  { current$ }: Link,
  pages: readonly Page[],
  scheduler: SchedulerLike,
  signal: AbortSignal,
): Observable<boolean> =>
  defer(() => {
    const done$ = new ReplaySubject<unknown>(mostPages);
    const announced$ = current$.pipe(
      switchMap((it) => (isConnection(it) ? it.announced.completed$ : EMPTY)),
    );
    const isDone$ = ({ id }: Page): Observable<boolean> =>
      race(done$.pipe(filter((done) => done === id)), timer(completeMs, scheduler)).pipe(
        take(1),
        map(() => true),
      );
    return using(
      () => announced$.subscribe(done$),
      () =>
        from(pages).pipe(
          concatMap((page) =>
            opened$(server, page, signal).pipe(
              concatMap((isOpen) => (isOpen ? isDone$(page) : of(false))),
            ),
          ),
          every((isOpen) => isOpen),
        ),
    );
  });

const notOpened = ({ name }: Server, doing: string): MillraceError =>
  new MillraceError(
    'server',
    `The MCP server '${name}' failed ${doing}: the user did not open the page that it requires.`,
  );
