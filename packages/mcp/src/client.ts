import { MillraceError } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import { Client, type ElicitResult } from '@modelcontextprotocol/client';
import {
  catchError,
  defer,
  firstValueFrom,
  from,
  fromEvent,
  isObservable,
  map,
  type Observable,
  type ObservableInput,
  of,
  Subject,
  take,
  takeUntil,
  throwError,
} from 'rxjs';
import type { Root, Server } from './server-options.js';
import { cleaned } from './text.js';

/** The names of the extensions of the protocol that are spoken. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';
const pagesExtension = 'io.modelcontextprotocol/ui';
const pageType = 'text/html;profile=mcp-app';

/** The announcements of a server. */
export interface Announced {
  readonly toolsChanged: () => void;
  /** The URI of a resource that has changed. */
  readonly updated$: Subject<string>;
  /** The id of a page that the user has completed. */
  readonly completed$: Subject<string>;
}

export const announcements = (toolsChanged: () => void): Announced => ({
  toolsChanged,
  updated$: new Subject(),
  completed$: new Subject(),
});

/** A client of the SDK that answers the questions of a server as the options say, and announces changes. */
export const clientOf = (server: Server, announced: Announced): Client => {
  const { onElicit, onElicitUrl, onSample, limits, http, roots, apps } = server;
  const changed = announced.toolsChanged;
  const client = new Client(
    { name: 'millrace', version: '0.1.0' },
    {
      capabilities: {
        ...((onElicit ?? onElicitUrl) && {
          elicitation: {
            ...(onElicit && { form: { applyDefaults: true } }),
            ...(onElicitUrl && { url: {} }),
          },
        }),
        ...(onSample && { sampling: {} }),
        ...(roots && { roots: { listChanged: true } }),
        extensions: {
          [tasksExtension]: {},
          ...(apps === true && { [pagesExtension]: { mimeTypes: [pageType] } }),
        },
      },
      listMaxPages: limits.pages,
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
      // A probe costs a child process one more start.
      versionNegotiation: { mode: http === undefined ? 'legacy' : 'auto' },
    },
  );
  // Also of servers that did not say that they would.
  client.setNotificationHandler('notifications/tools/list_changed', changed);
  client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
    announced.updated$.next(params.uri),
  );
  client.setNotificationHandler('notifications/elicitation/complete', ({ params }) =>
    announced.completed$.next(params.elicitationId),
  );
  if (onElicit ?? onElicitUrl) {
    client.setRequestHandler('elicitation/create', ({ params }, { mcpReq: { signal } }) =>
      answered(signal, () => elicited$(server, params, signal)),
    );
  }
  if (onSample) {
    client.setRequestHandler('sampling/createMessage', ({ params }, { mcpReq: { signal } }) =>
      answered(signal, () => onSample(params, signal)),
    );
  }
  if (roots) {
    client.setRequestHandler('roots/list', (_request, { mcpReq: { signal } }) =>
      answered(signal, () => rootsOf$(server).pipe(map((list) => ({ roots: [...list] })))),
    );
  }
  return client;
};

/** The first answer of a callback, unless the server cancels its question. */
const answered = <T>(signal: AbortSignal, answer: () => ObservableInput<T>): Promise<T> =>
  firstValueFrom(defer(answer).pipe(takeUntil(fromEvent(signal, 'abort'))));

// ---------------------------------------------------------------- questions

type Elicitation = Parameters<NonNullable<Server['onElicit']>>[0] | UrlElicitation;

interface UrlElicitation {
  readonly mode: 'url';
  readonly url: string;
  readonly message: string;
}

const elicited$ = (
  server: Server,
  params: Elicitation,
  signal: AbortSignal,
): Observable<ElicitResult> => {
  if (params.mode === 'url') {
    return opened$(server, params, signal).pipe(
      map((isOpened) => ({ action: isOpened ? 'accept' : 'decline' })),
    );
  }
  return server.onElicit === undefined
    ? throwError(() => cannotBeShown())
    : defer(() => from(server.onElicit?.(params, signal) ?? [])).pipe(take(1));
};

const cannotBeShown = (): Error => new Error('It cannot be shown.');

/** Whether the user has opened a page of the server. Errors if it cannot be shown. */
export const opened$ = (
  { onElicitUrl, limits }: Server,
  { url: address, message }: { readonly url: unknown; readonly message?: unknown },
  signal: AbortSignal,
): Observable<boolean> =>
  defer(() => {
    const url = pageOf(String(address));
    if (onElicitUrl === undefined || url === undefined) throw cannotBeShown();
    const text = typeof message === 'string' ? message : '';
    return from(onElicitUrl({ message: cleaned(text, limits.description), url }, signal));
  }).pipe(take(1));

/** The address of a web page, as a browser spells it; one with a password could disguise its host. Throws if it is not valid. */
const pageOf = (address: string): string | undefined => {
  const { href, protocol, username, password } = new URL(address);
  return /^https?:$/.test(protocol) && username + password === '' ? href : undefined;
};

/** The answers to questions that a server asks within a task, by their keys: those without a callback are errors. */
export const answersTo$ = (
  server: Server,
  question: unknown,
  signal: AbortSignal,
): Observable<unknown> => {
  const { method, params } = isRecord(question) ? question : {};
  const fields = isRecord(params) ? params : {};
  const refused$ = throwError(
    () => new MillraceError('server', `It asks for '${String(method)}'.`),
  );
  /* eslint-disable @typescript-eslint/consistent-type-assertions -- The callbacks get what the server sent, as elsewhere. */
  switch (method) {
    case 'elicitation/create':
      return elicited$(server, fields as unknown as Elicitation, signal).pipe(
        catchError(() => of({ action: 'decline' })),
      );
    case 'sampling/createMessage':
      return server.onSample === undefined
        ? refused$
        : from(server.onSample(fields as never, signal)).pipe(take(1));
    case 'roots/list':
      return server.roots === undefined
        ? refused$
        : rootsOf$(server).pipe(
            take(1),
            map((roots) => ({ roots })),
          );
    default:
      return refused$;
  }
  /* eslint-enable @typescript-eslint/consistent-type-assertions */
};

// ---------------------------------------------------------------- roots

interface FileRoot {
  readonly uri: string;
  readonly name?: string;
}

/** The roots now and after each change, as the protocol spells them. */
export const rootsOf$ = ({ name: owner, roots = [] }: Server): Observable<readonly FileRoot[]> =>
  (isObservable(roots) ? roots : of(roots)).pipe(
    map((list) => list.map((root) => fileRoot(owner, root))),
  );

const fileRoot = (owner: string, { uri, name }: Root): FileRoot => {
  const address = URL.canParse(String(uri)) ? new URL(uri) : undefined;
  if (address?.protocol !== 'file:') {
    throw new MillraceError(
      'config',
      `A root for the MCP server '${owner}' is not a file URL: '${String(uri)}'. Use pathToFileURL(path).`,
    );
  }
  return { uri: address.href, ...(name !== undefined && { name }) };
};
