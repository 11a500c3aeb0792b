import { A2A_VERSION_HEADER, type AgentCard, type StreamResponse } from '@a2a-js/sdk';
import { isLegacyJsonRpcMethod } from '@a2a-js/sdk/compat/v0_3';
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server';
import {
  A2A_ERROR_CODE,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import {
  type A2ARequestHandler,
  JsonRpcTransportHandler,
  ServerCallContext,
  validateVersion,
} from '@a2a-js/sdk/server';
import { toReadableStream } from 'millrace';
import { isRecord } from 'millrace/values';
import type { Visit } from '@millrace/server/chat';
import {
  catchError,
  concatMap,
  defer,
  finalize,
  from,
  lastValueFrom,
  map,
  type Observable,
  of,
  Subject,
  takeUntil,
  throwIfEmpty,
} from 'rxjs';
import { refusalOf } from './inbound.js';
import type { OpenTask, Tasks } from './tasks.js';
import { taskOf } from './task-view.js';

/** Answers a JSON-RPC request of either version. Errors if the server is to blame. */
export const answered$ = (
  { request, left$ }: Visit,
  body: unknown,
  tasks: Tasks,
  card: AgentCard,
): Observable<Response> =>
  defer(() => {
    if (!isRecord(body)) return of(notARequest(body));
    const rpc = rpcOf(request, body, card);
    if (isDeeper(body, maxDepth)) {
      const error = new RequestMalformedError('The request is nested too deeply.');
      return of(Response.json(rpc.errorOf(error)));
    }
    let opened$: Observable<OpenTask> | undefined;
    let failure: { readonly error: unknown } | undefined;
    /** Converts errors to those for clients: the SDK sends every error message. */
    const promised = <T>(value$: Observable<T>): Promise<T> =>
      lastValueFrom(
        value$.pipe(
          takeUntil(left$),
          throwIfEmpty(() => new UnsupportedOperationError('The client disconnected.')),
          catchError((error: unknown) => {
            const refusal = refusalOf(error);
            if (refusal === undefined) failure = { error };
            throw refusal ?? error;
          }),
        ),
      );
    const streamed = (open$: Observable<OpenTask>): AsyncGenerator<StreamResponse, void> => {
      opened$ = open$;
      return feedOf(of());
    };
    const handler = handlerOf(card, tasks, promised, streamed);
    return from(rpc.handle(handler)).pipe(
      concatMap((answer) => {
        if (failure !== undefined) throw failure.error;
        if (opened$ === undefined) return of(Response.json(answer));
        return opened$.pipe(
          concatMap((open) =>
            open.chat.stream$(open.callId, {
              // The stream starts with a snapshot.
              isRest: true,
              headers: streamHeaders,
              encode$: (event$) => rpc.encoded$(handler, event$.pipe(tasks.updates(open))),
            }),
          ),
        );
      }),
      catchError((error: unknown) => {
        const refusal = refusalOf(error);
        if (refusal === undefined) throw error;
        return of(Response.json(rpc.errorOf(refusal)));
      }),
    );
  });

/** The maximum depth of a request: the SDK and JSON encoding are recursive. */
const maxDepth = 200;

const isDeeper = (value: unknown, than: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (than === 0 || Object.values(value).some((item) => isDeeper(item, than - 1)));

const streamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  // Compression in a middleware or proxy would delay the stream.
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

const notARequest = (body: unknown): Response => {
  const error =
    body === undefined
      ? { code: A2A_ERROR_CODE.PARSE_ERROR, message: 'The body is not JSON.' }
      : { code: A2A_ERROR_CODE.INVALID_REQUEST, message: 'The body is not a JSON-RPC request.' };
  return Response.json({ jsonrpc: '2.0', id: null, error }, { status: 400 });
};

/** The methods of the protocol, for the SDK. */
const handlerOf = (
  card: AgentCard,
  tasks: Tasks,
  promised: <T>(value$: Observable<T>) => Promise<T>,
  streamed: (open$: Observable<OpenTask>) => AsyncGenerator<StreamResponse, void>,
): A2ARequestHandler => {
  const noPush = () => Promise.reject(new PushNotificationNotSupportedError());
  const unsupported = (what: string) => () =>
    Promise.reject(new UnsupportedOperationError(`${what} not supported.`));
  return {
    getAgentCard: () => Promise.resolve(card),
    getAuthenticatedExtendedAgentCard: unsupported('Extended cards are'),
    sendMessage: (params) =>
      promised(
        tasks.sent$(params).pipe(
          concatMap((open) => {
            const { historyLength, returnImmediately = false } = params.configuration ?? {};
            return (returnImmediately ? of(open.view) : tasks.settled$(open)).pipe(
              map((view) => taskOf(view, historyLength)),
            );
          }),
        ),
      ),
    sendMessageStream: (params) => streamed(tasks.sent$(params)),
    getTask: ({ id, historyLength }) =>
      promised(tasks.found$(id).pipe(map(({ view }) => taskOf(view, historyLength)))),
    cancelTask: ({ id }) => promised(tasks.cancelled$(id).pipe(map((view) => taskOf(view)))),
    resubscribe: ({ id }) => streamed(tasks.joined$(id)),
    listTasks: unsupported('A list of tasks is'),
    createTaskPushNotificationConfig: noPush,
    getTaskPushNotificationConfig: noPush,
    listTaskPushNotificationConfigs: noPush,
    deleteTaskPushNotificationConfig: noPush,
  };
};

interface Rpc {
  readonly handle: (handler: A2ARequestHandler) => Promise<unknown>;
  /** The updates of a stream, in the version of the request. */
  readonly encoded$: (
    handler: A2ARequestHandler,
    update$: Observable<StreamResponse>,
  ) => Observable<object>;
  readonly errorOf: (error: unknown) => object;
}

const rpcOf = (
  { headers }: Request,
  body: Readonly<Record<string, unknown>>,
  card: AgentCard,
): Rpc => {
  const isLegacy = isLegacyJsonRpcMethod(body['method']);
  const requestedVersion = headers.get(A2A_VERSION_HEADER) ?? '0.3';
  const context = new ServerCallContext({ requestedVersion });
  const given = typeof body['id'] === 'string' || typeof body['id'] === 'number';
  const errorOf: Rpc['errorOf'] = (error) => ({
    jsonrpc: '2.0',
    id: given ? body['id'] : null,
    error: isLegacy
      ? LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error)
      : JsonRpcTransportHandler.mapToJSONRPCError(error),
  });
  const handle = async (handler: A2ARequestHandler) => {
    validateVersion(requestedVersion, card, 'JSONRPC');
    const transport = isLegacy
      ? new LegacyJsonRpcTransportHandler(handler)
      : new JsonRpcTransportHandler(handler);
    return transport.handle({ ...body }, context);
  };
  return {
    handle,
    errorOf,
    encoded$: (handler, update$) =>
      defer(() => {
        const gone$ = new Subject<void>();
        const feed = () => feedOf(update$.pipe(takeUntil(gone$)));
        const streaming = { ...handler, sendMessageStream: feed, resubscribe: feed };
        return from(handle(streaming)).pipe(
          concatMap((stream) => (isStream(stream) ? from(stream) : [])),
          catchError((error: unknown) =>
            of(errorOf(refusalOf(error) ?? new Error('The stream failed.'))),
          ),
          finalize(() => {
            gone$.next();
          }),
        );
      }),
  };
};

async function* feedOf(update$: Observable<StreamResponse>): AsyncGenerator<StreamResponse, void> {
  yield* toReadableStream(() => update$);
}

const isStream = (value: unknown): value is AsyncGenerator<object, void> =>
  typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
