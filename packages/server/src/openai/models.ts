import { isMillraceError } from 'millrace';
import { checkOptions, isRecord, parsedJson, type Rule, wholeNumber } from 'millrace/values';
import {
  catchError,
  concatMap,
  defer,
  firstValueFrom,
  from,
  map,
  noop,
  type Observable,
  of,
  takeWhile,
  throwError,
  toArray,
} from 'rxjs';
import { failure } from '../chat/guard.js';
import type { MountedServers } from '../chat/mount-servers.js';
import { isPath } from '../chat/protocol.js';
import { fieldOf, isJson, readBody } from '../inbound.js';
import { refusal, refuse } from './refusals.js';

/** Options of `openAiModels`. */
export interface OpenAiModelsOptions {
  /** The path of the routes, which is that of each `openAi()`. Default: `/v1`. */
  readonly path?: string | undefined;
  /** The maximum size of a request, in bytes. Default: 4,000,000. */
  readonly maxBytes?: number | undefined;
}

/**
 * Serves several agents as the models of one OpenAI API: `openAiModels({ sales: chatServer(sales, { protocols: [openAi()] }), support })`. The keys are the
 * names of the models. A request goes to the server of its `model`, which checks it as usual; a list has the models of all servers
 * that the client may use. Other routes of the servers are not served here. Close the servers themselves.
 */
export const openAiModels = (
  servers: Readonly<Record<string, MountedServers>>,
  options: OpenAiModelsOptions = {},
): MountedServers => {
  checkOptions('openAiModels()', { servers }, { servers: isServers }, ['servers']);
  checkOptions('openAiModels()', options, { path: isPath, maxBytes: wholeNumber(1) });
  const { maxBytes = 4_000_000 } = options;
  const path = (options.path ?? '/v1').replace(/\/+$/u, '');
  const models: Models = { servers: new Map(Object.entries(servers)), path };
  const respond$ = (request: Request): Observable<Response> =>
    bodyOf$(request, maxBytes).pipe(
      concatMap((body) => {
        const { url, headers, signal } = request;
        const method = request.method === 'HEAD' ? 'GET' : request.method;
        return answer$(models, { method, url, headers, signal, body }, isJson(request));
      }),
      catchError((cause: unknown) => of(failure(cause, noop, refusal))),
      map((response) => {
        if (request.method !== 'HEAD') return response;
        discard(response);
        return new Response(null, response);
      }),
    );
  return {
    respond: (request) => firstValueFrom(respond$(request)),
    handles: (target) =>
      new URL(target.url).pathname.startsWith(`${path}/`) &&
      [...models.servers.values()].some((server) => server.handles(target)),
  };
};

/** A request that is sent to one or several servers. */
interface Asked extends Pick<Request, 'method' | 'url' | 'headers' | 'signal'> {
  readonly body: string | undefined;
}

const requestOf = ({ url, body, ...rest }: Asked): Request =>
  new Request(url, { ...rest, ...(body !== undefined && { body }) });

/** The servers by the names of their models, and the path of their routes. */
interface Models {
  readonly servers: ReadonlyMap<string, MountedServers>;
  readonly path: string;
}

/** Emits the first response that is not refused, or else the first one. */
const first$ = (
  { servers }: Models,
  asked: Asked,
  isRefused: (response: Response) => boolean,
): Observable<Response> =>
  from(servers.values()).pipe(
    concatMap((server) => server.respond(requestOf(asked))),
    takeWhile(isRefused, true),
    toArray(),
    map((responses) => {
      const chosen = responses.findLast((it) => !isRefused(it)) ?? responses[0] ?? missing();
      responses.filter((it) => it !== chosen).forEach(discard);
      return chosen;
    }),
  );

const unknown$ = ({ servers, path }: Models, asked: Asked): Observable<Response> =>
  list$(servers.values(), { ...asked, url: new URL(`${path}/models`, asked.url).href }).pipe(
    map(({ response, models }) => {
      if (models === undefined) return response;
      const names = models.map((it) => `'${String(fieldOf(it, 'id'))}'`).join(', ');
      const text = `The model does not exist. This server has ${names}.`;
      const refused = refusal(refuse(text, 'model', 'model_not_found', 404), 404);
      return withHeadersOf(response, refused);
    }),
  );

const ofModel$ = (models: Models, asked: Asked, model: unknown): Observable<Response> => {
  const server = typeof model === 'string' ? models.servers.get(model) : undefined;
  return server === undefined ? unknown$(models, asked) : from(server.respond(requestOf(asked)));
};

const answer$ = (models: Models, asked: Asked, isOfJson: boolean): Observable<Response> => {
  const { method, url, body } = asked;
  const route = new URL(url).pathname.slice(models.path.length).replace(/\/$/u, '');
  if (method === 'OPTIONS') return first$(models, asked, ({ ok }) => !ok);
  if (route === '/models' && method === 'GET') {
    return list$(models.servers.values(), asked).pipe(
      map(({ response, models: data }) =>
        data === undefined
          ? response
          : withHeadersOf(response, Response.json({ object: 'list', data })),
      ),
    );
  }
  const named = /^\/models\/([^/]+)$/u.exec(route)?.[1];
  if (named !== undefined) return ofModel$(models, asked, decoded(named));
  if (method === 'POST' && ['/chat/completions', '/responses'].includes(route)) {
    const parsed = isOfJson ? parsedJson(body ?? '') : undefined;
    // Any server refuses a malformed request.
    if (isRecord(parsed)) return ofModel$(models, asked, fieldOf(parsed, 'model'));
  }
  return first$(models, asked, ({ status }) => status === 404);
};

/** Emits the body as text; `undefined` if the request has no body. */
const bodyOf$ = (request: Request, maxBytes: number): Observable<string | undefined> =>
  defer(() => (request.body === null ? of('') : from(readBody(request, maxBytes)))).pipe(
    catchError((cause: unknown) =>
      throwError(() => (isMillraceError(cause) ? cause : refuse('The body is incomplete.'))),
    ),
    map((text) => {
      if (text === undefined) throw refuse('The request is too large.', null, null, 413);
      return request.body === null ? undefined : text;
    }),
  );

interface Listed {
  /** The response of the first server that has a list for this client, otherwise of the first server. */
  readonly response: Response;
  readonly models: readonly unknown[] | undefined;
}

/** Emits the models of all servers that the client may use. */
const list$ = (servers: Iterable<MountedServers>, asked: Asked): Observable<Listed> => {
  const headers = new Headers(asked.headers);
  ['content-type', 'content-length', 'content-encoding', 'transfer-encoding'].forEach((name) => {
    headers.delete(name);
  });
  const list = { ...asked, method: 'GET', headers, body: undefined };
  return from(servers).pipe(
    concatMap((server) => server.respond(requestOf(list))),
    concatMap(async (response): Promise<Listed> => {
      const data = response.ok ? fieldOf(parsedJson(await response.text()), 'data') : undefined;
      return { response, models: Array.isArray(data) ? data : undefined };
    }),
    toArray(),
    map((listed) => {
      const usable = listed.filter(({ models }) => models !== undefined);
      const { response } = usable[0] ?? listed[0] ?? { response: missing() };
      return {
        response,
        models: usable.length === 0 ? undefined : usable.flatMap(({ models = [] }) => models),
      };
    }),
  );
};

/** Copies the CORS headers of a server that allowed the origin. */
const withHeadersOf = ({ headers }: Response, response: Response): Response => {
  headers.forEach((value, name) => {
    if (name.startsWith('access-control-') || name === 'vary') response.headers.set(name, value);
  });
  return response;
};

const discard = ({ body }: Response): void => {
  body?.cancel().catch(noop);
};

const missing = (): Response => refusal(refuse('Not found.', null, null, 404), 404);

const decoded = (segment: string): string | undefined => {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
};

const isServers: Rule = [
  (value) =>
    isRecord(value) &&
    Object.keys(value).length > 0 &&
    Object.entries(value).every(
      ([model, server]) => model !== '' && isRecord(server) && 'respond' in server,
    ),
  'servers by the names of their models, such as { sales: chatServer(sales, { protocols: [openAi()] }) }',
];
