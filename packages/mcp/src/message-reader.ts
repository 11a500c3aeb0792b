import { restoreAsyncContext } from 'millrace';
import { isRecord } from 'millrace/values';
import { defer, filter, NEVER, noop, Observable, startWith, Subject } from 'rxjs';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Reads the messages of a server with tolerance, before the SDK does: it refuses a whole list for one bad entry, and a
 * result for one block that it does not know.
 */
export interface MessageReader {
  /** Remembers a request by its id. */
  sent(message: unknown): void;
  /** Returns the message in a form that the SDK accepts; undefined if it is unusable. `stream`: the id of the request whose stream brought it. */
  received(message: unknown, stream?: string): unknown;
  /** Emits once the request whose stream brought a question has ended; never if no stream did. */
  over$(questionId: unknown): Observable<unknown>;
  /**
   * The async context of the request that a question belongs to: the one whose stream brought it, or the only open one that can lead to
   * questions. If that is not known, that of the program: the callback must not take one user for another.
   */
  contextOf(questionId: unknown): Enter;
  /** Counts work of a server, such as a task between two polls, as an open request that can lead to questions, until the returned function is called. */
  hold(enter: Enter): () => void;
  /** Why entries of lists were left out. Each is returned once. */
  leftOut(): readonly string[];
}

/** The key within `_meta` of a result for the result as the server sent it. */
export const rawKey = 'millrace/raw';

/** The result as the server sent it. */
export const rawOf = (result: unknown): unknown => {
  const meta = isRecord(result) ? result['_meta'] : undefined;
  return isRecord(meta) && Object.hasOwn(meta, rawKey) ? meta[rawKey] : result;
};

/** Subscribes in the async context in which it was created. */
export type Enter = <T>(work$: Observable<T>) => Observable<T>;

export const createEnter = (): Enter => {
  const entered$ = new Subject<() => void>();
  entered$.pipe(restoreAsyncContext()).subscribe({ next: (work) => work(), error: noop });
  return (work$) =>
    new Observable((subscriber) =>
      entered$.next(() => {
        subscriber.add(work$.subscribe(subscriber));
      }),
    );
};

/** Whether servers ask questions during a request. */
const leadsToQuestions = (method: string): boolean =>
  /^(?:tools\/call|prompts\/get|resources\/read|completion\/complete)$/u.test(method) ||
  isOfTask(method);

/** Whether a request is about a task, which is open before and after it. */
const isOfTask = (method: string): boolean => method.startsWith('tasks/');

const questions: ReadonlySet<string> = new Set(['elicitation/create', 'sampling/createMessage']);

/** The maximum number of kept reasons. */
const mostReasons = 20;

/** The async contexts of open requests, and of tasks, which last longer than the requests about them. */
const createContexts = (ofProgram: Enter) => {
  const contexts = new Map<string, Enter>();
  const lasting = new Map<unknown, Enter>();
  const hold = (key: unknown, enter: Enter): (() => void) => {
    lasting.set(key, enter);
    return () => void lasting.delete(key);
  };
  return {
    begin: (id: string, method: string): void => {
      if (!leadsToQuestions(method)) return;
      const enter = createEnter();
      contexts.set(id, enter);
      if (!isOfTask(method)) hold(id, enter);
    },
    end: (id: string): void => {
      contexts.delete(id);
      lasting.delete(id);
    },
    hold: (enter: Enter): (() => void) => hold({}, enter),
    of: (id: string | undefined): Enter => {
      const [only, ...others] = lasting.values();
      const own = id === undefined && others.length === 0 ? only : contexts.get(id ?? '');
      return own ?? ofProgram;
    },
  };
};

/** `ofProgram` enters the async context of the program. */
export const createMessageReader = (ofProgram: Enter): MessageReader => {
  const methods = new Map<string, string>();
  const contexts = createContexts(ofProgram);
  /** The requests whose streams brought questions that have not been read yet. */
  const askedIn = new Map<unknown, string>();
  const ended$ = new Subject<string>();
  const end = (id: string): void => {
    methods.delete(id);
    contexts.end(id);
    ended$.next(id);
  };
  let reasons: string[] = [];
  const leaveOut = (reason: string): void => {
    if (reasons.length < mostReasons) reasons.push(reason);
  };
  return {
    sent: (message) => {
      if (!isRecord(message) || typeof message['method'] !== 'string') return;
      if ('id' in message) {
        const id = String(message['id']);
        methods.set(id, message['method']);
        contexts.begin(id, message['method']);
      } else if (message['method'] === 'notifications/cancelled' && isRecord(message['params'])) {
        end(String(message['params']['requestId']));
      }
    },
    received: (message, stream) => {
      if (!isRecord(message)) return message;
      const { method: asked } = message;
      if (typeof asked === 'string') {
        if (stream !== undefined && questions.has(asked)) askedIn.set(message['id'], stream);
        return ofServer(message);
      }
      const id = String(message['id']);
      const method = methods.get(id);
      end(id);
      return response(message, method, leaveOut);
    },
    over$: (questionId) =>
      defer(() => {
        const request = askedIn.get(questionId);
        askedIn.delete(questionId);
        if (request === undefined) return NEVER;
        const own$ = ended$.pipe(filter((id) => id === request));
        return methods.has(request) ? own$ : own$.pipe(startWith(request));
      }),
    hold: (enter) => contexts.hold(enter),
    contextOf: (questionId) => contexts.of(askedIn.get(questionId)),
    leftOut: () => {
      const all = reasons;
      reasons = [];
      return all;
    },
  };
};

// ---------------------------------------------------------------- requests and notifications

const ofServer = (message: Fields): Fields | undefined => {
  const { params: given, ...rest } = message;
  const params = isRecord(given) ? withMeta(given) : undefined;
  if (message['method'] === 'notifications/progress') {
    const read = params && progressIn(params);
    return read && { ...rest, params: read };
  }
  return { ...rest, ...(params && { params }) };
};

/** Progress without a token and a number cannot be assigned. */
const progressIn = (params: Fields): Fields | undefined => {
  const { total, message, ...rest } = params;
  const progress = numberIn(params['progress']);
  if (progress === undefined || !/^(string|number)$/.test(typeof params['progressToken'])) {
    return undefined;
  }
  const whole = numberIn(total);
  return {
    ...rest,
    progress,
    ...(whole !== undefined && { total: whole }),
    ...(typeof message === 'string' && { message }),
  };
};

const numberIn = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

const withMeta = (fields: Fields): Fields => {
  const { _meta: meta, ...rest } = fields;
  return isRecord(meta) ? fields : rest;
};

// ---------------------------------------------------------------- responses

const response = (
  message: Fields,
  method: string | undefined,
  leaveOut: (reason: string) => void,
): Fields => {
  const { error, result, ...others } = message;
  const rest = method === undefined ? others : { jsonrpc: '2.0', ...others };
  if (error !== undefined && error !== null) return { ...rest, error: errorIn(error) };
  if ('result' in message) return { ...rest, result: resultIn(result, method, leaveOut) };
  return method === undefined ? message : { ...rest, error: errorIn(nothing) };
};

const nothing = { message: 'its response has neither a result nor an error.' };

const errorIn = (error: unknown): Fields => {
  const fields = isRecord(error) ? error : { message: error };
  const code = numberIn(fields['code']);
  const { message } = fields;
  return {
    ...fields,
    code: Number.isInteger(code) ? code : -32_603,
    message: typeof message === 'string' ? message : `It failed: ${JSON.stringify(error)}`,
  };
};

/** Keeps the result for `rawOf`, in addition to the fields that the SDK requires. */
const empty: Readonly<Record<string, Fields>> = {
  'tools/call': { content: [] },
  'prompts/get': { messages: [] },
  'resources/read': { contents: [] },
  'completion/complete': { completion: { values: [] } },
};

/** Methods whose results have no fields that are used. */
const acknowledged = new Set(['resources/subscribe', 'resources/unsubscribe', 'ping']);

type EntryReader = (entry: Fields) => Fields | string;

const resultIn = (
  result: unknown,
  method: string | undefined,
  leaveOut: (reason: string) => void,
): unknown => {
  if (method === 'initialize' || method === 'server/discover') return initialized(result);
  const fields = isRecord(result) ? withMeta(result) : {};
  if (fields['resultType'] === 'input_required') return fields;
  const common = { ...withoutNulls(fields), resultType: 'complete' };
  if (method !== undefined && acknowledged.has(method)) return { resultType: 'complete' };
  const kept = method === undefined ? undefined : empty[method];
  if (kept !== undefined) {
    const { _meta: meta } = fields;
    const raw = { ...(isRecord(meta) && meta), [rawKey]: result };
    return { ...kept, ...fresh(fields), resultType: 'complete', _meta: raw };
  }
  const list = method === undefined ? undefined : lists[method];
  if (list === undefined) return common;
  const [key, read] = list;
  const { nextCursor: cursor } = fields;
  return {
    ...common,
    ...fresh(fields),
    [key]: entriesIn(fields[key] ?? result, read, key, leaveOut),
    ...(typeof cursor === 'number' && { nextCursor: String(cursor) }),
  };
};

/** Required by version 2026-07-28. */
const fresh = ({ ttlMs, cacheScope }: Fields): { ttlMs: number; cacheScope: string } => ({
  ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0 ? Number(ttlMs) : 0,
  cacheScope: cacheScope === 'public' ? cacheScope : 'private',
});

const withoutNulls = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));

const initialized = (result: unknown): unknown => {
  if (!isRecord(result)) return result;
  const {
    serverInfo: server,
    capabilities,
    instructions,
    ...rest
  } = withoutNulls(withMeta(result));
  const about = isRecord(server) ? server : {};
  const { name, version, ...others } = withoutNulls(about);
  return {
    ...rest,
    capabilities: isRecord(capabilities) ? withoutNulls(capabilities) : {},
    ...(typeof instructions === 'string' && { instructions }),
    ...(('serverInfo' in result || !('supportedVersions' in result)) && {
      serverInfo: {
        ...only(others, { title: isString, websiteUrl: isString }),
        name: typeof name === 'string' ? name : 'unnamed',
        version: typeof version === 'string' ? version : '0',
      },
    }),
  };
};

// ---------------------------------------------------------------- lists

/** Omits only the entries that cannot be read. */
const entriesIn = (
  list: unknown,
  read: EntryReader,
  key: string,
  leaveOut: (reason: string) => void,
): readonly Fields[] =>
  (Array.isArray(list) ? list : []).flatMap((entry: unknown, index) => {
    const known = isRecord(entry) ? read(entry) : 'it is not an object';
    if (typeof known !== 'string') return [known];
    leaveOut(`entry ${index + 1} of its ${key} is left out: ${known}`);
    return [];
  });

type Check = (value: unknown) => boolean;

const isString: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value);

/** The fields that pass their check. */
const only = (entry: Fields, checks: Readonly<Record<string, Check>>): Fields =>
  Object.fromEntries(
    Object.entries(checks).flatMap(([key, check]) =>
      Object.hasOwn(entry, key) && check(entry[key]) ? [[key, entry[key]]] : [],
    ),
  );

const common: Readonly<Record<string, Check>> = {
  title: isString,
  description: isString,
  _meta: isRecord,
};

const readTool: EntryReader = (entry) => {
  const { name, inputSchema: given, annotations, outputSchema, execution } = entry;
  if (typeof name !== 'string' || name === '') return 'it has no name';
  const schema = isRecord(given) ? given : {};
  const { type = 'object' } = schema;
  if (type !== 'object' && !(Array.isArray(type) && type.includes('object'))) {
    return `the input of '${name}' is not an object`;
  }
  const isBoolean: Check = (value) => typeof value === 'boolean';
  const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];
  return {
    ...only(entry, common),
    name,
    inputSchema: { ...schema, type: 'object' },
    ...(isRecord(annotations) && {
      annotations: only(annotations, {
        title: isString,
        ...Object.fromEntries(hints.map((hint) => [hint, isBoolean])),
      }),
    }),
    ...(isRecord(outputSchema) && outputSchema['type'] === 'object' && { outputSchema }),
    ...(isRecord(execution) &&
      /^(optional|required|forbidden)$/.test(String(execution['taskSupport'])) && {
        execution: { taskSupport: execution['taskSupport'] },
      }),
  };
};

const readResource =
  (key: 'uri' | 'uriTemplate'): EntryReader =>
  (entry) => {
    const { [key]: uri, name } = entry;
    if (typeof uri !== 'string' || uri === '') return `it has no '${key}'`;
    return {
      ...only(entry, { ...common, mimeType: isString, size: isNumber }),
      [key]: uri,
      name: typeof name === 'string' ? name : uri,
    };
  };

const readPrompt: EntryReader = (entry) => {
  const { name, arguments: parameters } = entry;
  if (typeof name !== 'string' || name === '') return 'it has no name';
  return {
    ...only(entry, common),
    name,
    arguments: (Array.isArray(parameters) ? parameters : []).flatMap((one: unknown) =>
      isRecord(one) && typeof one['name'] === 'string'
        ? [
            {
              ...only(one, { title: isString, description: isString }),
              name: one['name'],
              ...(typeof one['required'] === 'boolean' && { required: one['required'] }),
            },
          ]
        : [],
    ),
  };
};

const lists: Readonly<Record<string, readonly [key: string, read: EntryReader]>> = {
  'tools/list': ['tools', readTool],
  'resources/list': ['resources', readResource('uri')],
  'resources/templates/list': ['resourceTemplates', readResource('uriTemplate')],
  'prompts/list': ['prompts', readPrompt],
};
