import {
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  from,
  map,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  repeat,
  scan,
  takeWhile,
  tap,
  throwError,
} from 'rxjs';
import { fromFetch } from 'rxjs/fetch';

/** The server refused a request. Its message is for the user. */
export class Refusal extends Error {
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Passes a response on, or errors with the problem that the server reports. */
export const accepted = (response: Response): Observable<Response> =>
  response.ok
    ? of(response)
    : from(response.json().catch(() => ({}))).pipe(
        map(({ error }: { error?: unknown }) => {
          const { status } = response;
          if (typeof error === 'string' && error !== '') throw new Refusal(error, status);
          // A proxy in front of a server that restarts, or that server itself.
          if (status > 501) throw new Error('The server is not ready.');
          throw new Refusal(wordsFor(status), status);
        }),
      );

/** The words for a refusal that has none of its own, such as that of a proxy. */
const wordsFor = (status: number): string =>
  refusals.get(status) ?? `The server refused this (${status}). Load the page again.`;

const refusals = new Map([
  [401, 'You are not logged in. Log in, and load the page again.'],
  [403, 'You may not do this.'],
  [404, 'The server does not have this any more.'],
  [409, 'The conversation has changed. Load it again.'],
  [413, 'This is too large for the server. Send less text, or smaller files.'],
  [429, 'These were too many requests. Wait a moment, and try again.'],
  [500, 'Something went wrong on the server. Try again.'],
]);

// ---------------------------------------------------------------- event streams

/** An event of a stream. Without data, the server has nothing to stream. */
export interface StreamEvent {
  readonly id?: string;
  readonly data?: string;
}

/** Requests a stream, and emits its events until it ends. One without a body emits an event without data. */
export const events$ = (
  path: string,
  init: RequestInit = {},
  isResumed = false,
): Observable<StreamEvent> =>
  fromFetch(path, {
    credentials: 'same-origin',
    ...init,
    selector: (response) =>
      // A server that has forgotten the answer has nothing more of it.
      (isResumed && response.status === 404
        ? of(new Response(null, { status: 204 }))
        : accepted(response)
      ).pipe(
        mergeMap(({ status, body }) => {
          if (status === 204 || body === null) return of({});
          const reader = body.pipeThrough(new TextDecoderStream()).getReader();
          return defer(() => reader.read()).pipe(
            repeat(),
            takeWhile(({ done }) => !done),
            map(({ value = '' }) => value),
            toEvents(),
          );
        }),
      ),
  });

/** Requests the stream of an answer. Errors if it ends before its last event. */
export const answer$ = (
  path: string,
  init: RequestInit,
  isResumed = false,
): Observable<StreamEvent> => events$(path, init, isResumed).pipe(untilDone(isResumed));

/** Splits the text of server-sent events, wherever it is cut. Comments are skipped. */
export const toEvents = (): OperatorFunction<string, StreamEvent> => (text$) =>
  text$.pipe(
    scan(
      ({ rest }: { readonly rest: string; readonly blocks: readonly string[] }, text) => {
        const blocks = (rest + text).split(/\r?\n\r?\n/u);
        return { rest: blocks.at(-1) ?? '', blocks: blocks.slice(0, -1) };
      },
      { rest: '', blocks: [] },
    ),
    concatMap(({ blocks }) => blocks.map(eventOf)),
    filter(({ data }) => data !== undefined),
  );

const eventOf = (block: string): StreamEvent => {
  const values = (name: string): readonly string[] =>
    block
      .split(/\r?\n/u)
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /u, ''));
  const [id] = values('id');
  const data = values('data');
  return { ...(id && { id }), ...(data.length > 0 && { data: data.join('\n') }) };
};

/** Ends at the protocol's last event. A stream that ends without it errors; an empty one may be of a forgotten answer. */
const untilDone =
  (isResumed: boolean): OperatorFunction<StreamEvent, StreamEvent> =>
  (event$) =>
    defer(() => {
      let last: StreamEvent | undefined;
      return concat(
        event$.pipe(
          tap((event) => (last = event)),
          takeWhile(({ data }) => data !== '[DONE]'),
        ),
        defer(() => {
          if (last?.data === '[DONE]' || (last && last.data === undefined)) return EMPTY;
          return last === undefined && isResumed
            ? of({})
            : throwError(() => new Error('The connection was lost.'));
        }),
      );
    });
