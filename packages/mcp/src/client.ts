import { MillraceError } from 'millrace';
import { isRecord, messageOf } from 'millrace/values';
import {
  Client,
  type ElicitResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/client';
import {
  catchError,
  defaultIfEmpty,
  defer,
  finalize,
  firstValueFrom,
  from,
  fromEvent,
  identity,
  isObservable,
  map,
  merge,
  type MonoTypeOperatorFunction,
  NEVER,
  type Observable,
  type ObservedValueOf,
  of,
  Subject,
  take,
  takeUntil,
  tap,
  throwError,
  throwIfEmpty,
} from 'rxjs';
import type { Elicitor, Root, Sampler, Server } from './server-options.js';
import type { Enter } from './message-reader.js';
import { cleaned, readableSchema } from './text.js';

/** The supported extensions of the protocol. */
export const tasksExtension = 'io.modelcontextprotocol/tasks';
const pagesExtension = 'io.modelcontextprotocol/ui';
const pageType = 'text/html;profile=mcp-app';

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

/** The request that a question of a server belongs to. */
interface OwnRequest {
  /** Enters its async context. */
  readonly enter$: Enter;
  /** Emits once it has ended; immediately if the question has none. */
  readonly over$: Observable<unknown>;
}

export type RequestOf = (questionId: string | number) => OwnRequest;

/**
 * A client of the SDK that answers the questions of a server as the options say, and announces changes. It asks the user
 * or the model only for an open request, and only as long as that is open.
 */
export const clientOf = (server: Server, announced: Announced, requestOf: RequestOf): Client => {
  const { onElicit, onElicitUrl, onSample, limits, http, roots, apps } = server;
  const changed = announced.toolsChanged;
  const client = new Client(
    { name: 'millrace', version: '0.1.0' },
    {
      capabilities: {
        ...((onElicit ?? onElicitUrl) && {
          elicitation: {
            ...(onElicit && { form: {} }),
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
      // A probe would start the child process once more.
      versionNegotiation: { mode: http === undefined ? 'legacy' : 'auto' },
    },
  );
  // Listen even if the server did not announce the capability.
  client.setNotificationHandler('notifications/tools/list_changed', changed);
  client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
    announced.updated$.next(params.uri),
  );
  client.setNotificationHandler('notifications/elicitation/complete', ({ params }) =>
    announced.completed$.next(params.elicitationId),
  );
  const answer = answering(server);
  if (onElicit ?? onElicitUrl) {
    client.setRequestHandler('elicitation/create', ({ params }, { mcpReq }) =>
      answer(mcpReq, requestOf(mcpReq.id), (signal) => elicited$(server, params, signal)),
    );
  }
  if (onSample) {
    client.setRequestHandler('sampling/createMessage', ({ params }, { mcpReq }) =>
      answer(mcpReq, requestOf(mcpReq.id), (signal) => sampled$(server, params, signal)),
    );
  }
  if (roots) {
    // Up to 2025-11-25, servers ask when they start and after changes, outside of any request. No one is asked here.
    client.setRequestHandler('roots/list', (_request, { mcpReq }) =>
      answer(mcpReq, { enter$: identity, over$: NEVER }, () => listed$(server)),
    );
  }
  return client;
};

/** The maximum number of open questions of a server: each may take time of a user or a model. */
const mostQuestions = 16;

type Answering = <T>(
  question: { readonly signal: AbortSignal },
  request: OwnRequest,
  answer: (signal: AbortSignal) => Observable<T>,
) => Promise<T>;

/** Emits the first answer of each callback, unless the server cancels the question or its request ends. */
const answering = (server: Server): Answering => {
  let open = 0;
  return ({ signal }, { enter$, over$ }, answer) => {
    if (open >= mostQuestions) {
      return Promise.reject(new Refusal('It has too many questions at the same time.'));
    }
    open += 1;
    const abort = new AbortController();
    const ended$ = merge(fromEvent(signal, 'abort'), over$).pipe(tap(() => abort.abort()));
    return firstValueFrom(
      enter$(defer(() => answer(abort.signal))).pipe(
        withoutReason(server),
        takeUntil(ended$),
        throwIfEmpty(notOpen),
        finalize(() => (open -= 1)),
      ),
    );
  };
};

/** An error whose message the server may see. */
class Refusal extends Error {}

/** The error that the protocol names for a question without a request. */
const notOpen = (): ProtocolError =>
  new ProtocolError(
    ProtocolErrorCode.InvalidParams,
    'A question needs a request of the client that is open.',
  );

/** Hides errors of the application from the server. */
const withoutReason = <T>(server: Server): MonoTypeOperatorFunction<T> =>
  catchError((cause: unknown) => {
    if (cause instanceof Refusal) throw cause;
    warn(
      server,
      `A question of the MCP server '${server.name}' was not answered: ${messageOf(cause)}`,
    );
    throw new Refusal('The client could not answer.');
  });

/** Passes a warning to the application. Ignores errors of its callback. */
export const warn = ({ onWarning }: Server, message: string): void => {
  try {
    onWarning?.(message);
  } catch {
    // There is no one to report the error to.
  }
};

// ---------------------------------------------------------------- questions

type Form = Parameters<Elicitor>[0];
type Elicitation = Form | UrlElicitation;

interface UrlElicitation {
  readonly mode: 'url';
  readonly url: string;
  readonly message: string;
}

/** The answer to a form or a page. If the callback completes without an answer, the form is closed. */
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
  const { onElicit, limits } = server;
  if (onElicit === undefined) return throwError(() => cannotBeShown());
  const { message, requestedSchema: schema } = params;
  const form = {
    ...params,
    message: cleaned(message, limits.description),
    ...(isRecord(schema) && { requestedSchema: readableForm(schema, limits.description) }),
  };
  return defer(() => from(onElicit(form, signal))).pipe(
    take(1),
    defaultIfEmpty<ElicitResult, ElicitResult>({ action: 'cancel' }),
    map((answer) => withDefaults(schema, answer)),
  );
};

const readableForm = (
  schema: Readonly<Record<string, unknown>>,
  maxLength: number,
): Form['requestedSchema'] =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- Of the same form, with cleaned texts.
  readableSchema(schema, maxLength) as Form['requestedSchema'];

/** Fills in the defaults of fields, which the SDK would also write into prototypes. */
const withDefaults = (schema: unknown, answer: ElicitResult): ElicitResult => {
  const properties = isRecord(schema) ? schema['properties'] : undefined;
  if (answer.action !== 'accept' || !isRecord(properties)) return answer;
  const defaults = Object.entries(properties).flatMap(([key, field]) =>
    isRecord(field) && isFieldValue(field['default']) && key !== '__proto__'
      ? [[key, field['default']] as const]
      : [],
  );
  return { ...answer, content: { ...Object.fromEntries(defaults), ...answer.content } };
};

const isFieldValue = (value: unknown): value is string | number | boolean | string[] =>
  /^(string|number|boolean)$/.test(typeof value) ||
  (Array.isArray(value) && value.every((it) => typeof it === 'string'));

const sampled$ = (
  { onSample }: Server,
  params: Parameters<Sampler>[0],
  signal: AbortSignal,
): Observable<ObservedValueOf<ReturnType<Sampler>>> =>
  defer(() =>
    onSample === undefined ? throwError(() => refused()) : from(onSample(params, signal)),
  ).pipe(
    take(1),
    throwIfEmpty(() => new Refusal('The client has no answer.')),
  );

const listed$ = (server: Server): Observable<{ roots: FileRoot[] }> =>
  rootsOf$(server).pipe(
    take(1),
    map((roots) => ({ roots: [...roots] })),
    throwIfEmpty(() => new Refusal('The client has no answer.')),
  );

const cannotBeShown = (): Error => new Refusal('It cannot be shown.');
const refused = (): Error => new Refusal('The client does not answer this.');

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
  }).pipe(take(1), defaultIfEmpty(false));

/** The address of a web page, as a browser spells it; one with a password could disguise its host. */
const pageOf = (address: string): string | undefined => {
  if (!URL.canParse(address)) return undefined;
  const { href, protocol, username, password } = new URL(address);
  return /^https?:$/.test(protocol) && username + password === '' ? href : undefined;
};

/** The answer to a question that a server asks within a task. The signal aborts when it is unsubscribed from. */
export const answerTo$ = (server: Server, question: unknown): Observable<unknown> =>
  defer(() => {
    const { method, params } = isRecord(question) ? question : {};
    const fields = isRecord(params) ? params : {};
    const abort = new AbortController();
    return ofMethod$(server, method, fields, abort.signal).pipe(
      withoutReason(server),
      catchError((cause: unknown) =>
        throwError(
          () =>
            new MillraceError(
              'server',
              `A task of the MCP server '${server.name}' asks for '${cleaned(String(method), 100)}'. ${messageOf(cause)}`,
            ),
        ),
      ),
      finalize(() => abort.abort()),
    );
  });

const ofMethod$ = (
  server: Server,
  method: unknown,
  fields: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Observable<unknown> => {
  /* eslint-disable @typescript-eslint/consistent-type-assertions -- The callbacks get what the server sent, as elsewhere. */
  switch (method) {
    case 'elicitation/create':
      return elicited$(server, { message: '', ...fields } as unknown as Elicitation, signal).pipe(
        catchError((cause: unknown) => {
          if (cause instanceof Refusal) return of({ action: 'decline' });
          throw cause;
        }),
      );
    case 'sampling/createMessage':
      return sampled$(server, fields as never, signal);
    case 'roots/list':
      return server.roots === undefined ? throwError(() => refused()) : listed$(server);
    default:
      return throwError(() => refused());
  }
  /* eslint-enable @typescript-eslint/consistent-type-assertions */
};

// ---------------------------------------------------------------- roots

interface FileRoot {
  readonly uri: string;
  readonly name?: string;
}

/** Emits the roots in the format of the protocol, now and after each change. */
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
