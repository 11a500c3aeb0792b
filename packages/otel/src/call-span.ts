import {
  type Attributes,
  type Context,
  context as contexts,
  createContextKey,
  diag,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import {
  type AgentEvent,
  type CallInfo,
  cell,
  isMillraceError,
  type Layer,
  type LayerContext,
  type Reply,
  type Usage,
} from '@millrace/core';
import {
  catchError,
  defer,
  EMPTY,
  filter,
  finalize,
  ignoreElements,
  merge,
  type Observable,
  Subject,
  takeUntil,
  tap,
} from 'rxjs';
import { timeOf } from './active-context.js';
import { type Redact, redactedJson, toAnswer, toMessages, toParts } from './content.js';
import { keys, operations } from './conventions.js';
import type { Telemetry } from './instruments.js';
import { spanEventOf } from './span-events.js';

/** The options, checked and completed. None of the functions throws. */
export interface Settings {
  readonly telemetry: () => Telemetry | undefined;
  /** Absent if no content is captured. */
  readonly redact: Redact | undefined;
  readonly attributes: (call: CallInfo) => Attributes;
  readonly parent: (call: CallInfo) => Context | undefined;
  readonly provider: (model: string) => string | undefined;
}

/** The span of a call, for the spans of its requests and tools. */
export interface TracedCall {
  readonly span: Span;
  /** Has the span of the call. */
  readonly context: Context;
  /** The context in which the call was subscribed. */
  readonly outer: Context;
  readonly telemetry: Telemetry;
  readonly settings: Settings;
  readonly agentName: string;
  /** The attributes of all spans of the call. */
  readonly shared: Attributes;
  readonly startedAt: number;
  readonly now: () => number;
  readonly isInterrupted: () => boolean;
  /** Measures waits for a limit: that of the call ends with its next step, or with the call. */
  readonly queue: ReturnType<typeof createQueueTimer>;
}

/** The traced call of a layer's context; without one, nothing is recorded. */
export const tracedCall = cell('call', (): { current?: TracedCall } => ({}));

/** The contexts of the calls and tool steps of a family, for the calls that they make. */
export const parents = cell('family', () => new Map<string, Context>());

/** Marks the context of a tool step with its key, also for spans that the tool makes itself. */
export const withinStep = createContextKey('millrace: step');

export const stepKey = (callId: string, stepId: string): string => `${callId} ${stepId}`;

/** Calls a function of the program. An error is logged: it must not fail a call. */
export const harmless = <Value, Result>(
  option: string,
  work: (value: Value) => Result,
  otherwise: Result,
): ((value: Value) => Result) => {
  return (value) => {
    try {
      return work(value);
    } catch (cause) {
      diag.error(`otel(): '${option}' threw an error.`, cause);
      return otherwise;
    }
  };
};

/** Traces each call, from its subscription until it ends. */
export const traceCalls =
  (settings: Settings): NonNullable<Layer['open']> =>
  (context) =>
  (call$) =>
    defer(() => {
      const begun = beginCall(settings, context);
      if (begun === undefined) return call$;
      const { watch$, end, fail, abort } = begun;
      const over$ = new Subject<void>();
      return merge(watch$.pipe(takeUntil(over$)), call$.pipe(finalize(() => over$.next()))).pipe(
        tap({ complete: end, error: fail, unsubscribe: abort }),
      );
    });

const beginCall = (settings: Settings, context: LayerContext) => {
  const telemetry = settings.telemetry();
  if (telemetry === undefined) return undefined;
  const traced = startCall(settings, telemetry, context);
  const { span } = traced;
  const isWatched = span.isRecording() || telemetry.instruments !== undefined;
  const finish = endingOf(traced, context);
  let reply: Reply | undefined;
  const end = (): void => finish(reply && replyAttributes(reply, traced.settings.redact));
  const see = (event: AgentEvent): void => {
    if (event.type === 'postCall') ({ reply } = event);
    if (event.type === 'queued' && event.why === 'calls') traced.queue.start();
    if (event.type === 'admitted' && event.why !== 'calls') traced.queue.add(event);
    note(span, traced.settings, event);
  };
  return {
    // Without observers, the core creates no events.
    watch$: isWatched ? watched$(context, span, see) : EMPTY,
    end,
    fail: (cause: unknown) => {
      fail(span, cause, traced.settings.redact);
      finish({}, errorTypeOf(cause));
    },
    // A subscriber may leave with the reply.
    abort: () => (reply === undefined ? finish({ [keys.reason]: 'aborted' }) : end()),
  };
};

const startCall = (settings: Settings, telemetry: Telemetry, context: LayerContext): TracedCall => {
  const { call, scheduler, local, interruption } = context;
  const now = () => scheduler.now();
  const startedAt = now();
  const outer = contexts.active();
  const parent = parentOf(settings, context, outer);
  const agentName = call.agent.at(-1) ?? '';
  const shared = sharedAttributes(settings, call);
  const isResumed = context.layers.some(({ info }) => info?.resumed === true);
  const span = telemetry.tracer.startSpan(
    `${operations.call} ${agentName}`,
    {
      kind: SpanKind.INTERNAL,
      startTime: timeOf(startedAt),
      attributes: {
        ...{ ...shared, ...attributesOf(call), [keys.agentName]: agentName },
        ...(isResumed && { [keys.resumed]: true }),
      },
    },
    parent,
  );
  const own = trace.setSpan(parent, span);
  const queue = createQueueTimer(telemetry, now, { [keys.agentName]: agentName }, own);
  const traced = {
    ...{ span, context: own, outer, telemetry, agentName, shared, startedAt, now, queue },
    settings: span.isRecording() ? settings : { ...settings, redact: undefined },
    isInterrupted: () => interruption.current !== undefined,
  };
  local(parents).set(call.callId, own);
  local(tracedCall).current = traced;
  return traced;
};

/** Ends the span, with attributes and the type of its error. */
const endingOf = (
  { span, context: own, telemetry: { instruments }, agentName, startedAt, now, queue }: TracedCall,
  { call, local }: LayerContext,
) => {
  return (attributes: Attributes = {}, errorType?: string): void => {
    local(parents).delete(call.callId);
    queue.stop();
    const endedAt = now();
    span.setAttributes(attributes);
    span.end(timeOf(endedAt));
    const measured = { [keys.agentName]: agentName, ...failure(errorType) };
    instruments?.record('callDuration', seconds(endedAt - startedAt), measured, own);
    if (errorType !== undefined) {
      instruments?.fail({ [keys.operation]: operations.call, [keys.errorType]: errorType }, own);
    }
  };
};

/** A call of a tool is below its step; with the active span of the tool, if it made one. Others are below what was active. */
const parentOf = (settings: Settings, context: LayerContext, active: Context): Context => {
  const { call, parentStep = '', local } = context;
  const { parentId } = call;
  if (parentId === undefined) return settings.parent(call) ?? active;
  const key = stepKey(parentId, parentStep);
  if (active.getValue(withinStep) === key) return active;
  const known = local(parents);
  return known.get(key) ?? known.get(parentId) ?? active;
};

const sharedAttributes = ({ attributes }: Settings, call: CallInfo): Attributes => ({
  ...attributes(call),
  ...(call.sessionId !== undefined && { [keys.conversationId]: call.sessionId }),
  [keys.callId]: call.callId,
});

const attributesOf = ({ rootId, parentId, agent }: CallInfo): Attributes => ({
  [keys.operation]: operations.call,
  [keys.rootId]: rootId,
  ...(parentId !== undefined && { [keys.parentId]: parentId }),
  [keys.agentPath]: agent.join('/'),
});

/** Watches the events of the call itself: sub-agents have spans of their own. */
const watched$ = (
  { call, events$, interruption, scheduler }: LayerContext,
  span: Span,
  see: (event: AgentEvent) => void,
): Observable<never> =>
  merge(
    events$.pipe(
      filter(({ callId }) => callId === call.callId),
      tap(see),
    ),
    interruption.signal$.pipe(
      tap(() => span.addEvent('millrace.interrupt', timeOf(scheduler.now()))),
    ),
  ).pipe(
    ignoreElements(),
    // The error of the call, which `open` passes on.
    catchError(() => EMPTY),
  );

const note = (span: Span, { redact }: Settings, event: AgentEvent): void => {
  if (!span.isRecording()) return;
  if (event.type === 'preCall' && redact !== undefined) {
    span.setAttribute(keys.inputMessages, redactedJson(toMessages(event.input), redact));
  }
  const attributes = spanEventOf(event, redact);
  if (attributes !== undefined) {
    span.addEvent(`millrace.${event.type}`, attributes, timeOf(event.at));
  }
};

const replyAttributes = (
  { reason, iterations, finish, usage, content }: Reply,
  redact: Redact | undefined,
): Attributes => ({
  ...usageAttributes(usage),
  [keys.finishReasons]: [finish],
  [keys.reason]: reason,
  [keys.iterations]: iterations,
  ...(reason === 'suspended' && { [keys.suspended]: true }),
  ...(redact !== undefined && {
    [keys.outputMessages]: redactedJson(toAnswer(toParts(content), finish), redact),
  }),
});

/** Input tokens include those of the provider's cache, as the conventions ask. */
export const usageAttributes = (usage: Usage): Attributes =>
  // Nothing was reported.
  inputTokens(usage) + usage.outputTokens === 0
    ? {}
    : {
        [keys.inputTokens]: inputTokens(usage),
        [keys.outputTokens]: usage.outputTokens,
        [keys.cacheReadTokens]: usage.cacheReadTokens,
        [keys.cacheWriteTokens]: usage.cacheWriteTokens,
      };

export const inputTokens = (usage: Usage): number =>
  usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;

export const seconds = (ms: number): number => ms / 1_000;

export const errorTypeOf = (cause: unknown): string =>
  isMillraceError(cause) ? cause.code : 'unknown';

export const failure = (errorType: string | undefined): Attributes =>
  errorType === undefined ? {} : { [keys.errorType]: errorType };

/** Marks a span as failed. The message of an error may quote content. */
export const fail = (span: Span, cause: unknown, redact: Redact | undefined): void => {
  const message =
    cause instanceof Error && redact !== undefined ? redact(cause.message) : undefined;
  span.setAttribute(keys.errorType, errorTypeOf(cause));
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
};

const createQueueTimer = (
  { instruments }: Telemetry,
  now: () => number,
  attributes: Attributes,
  context: Context,
) => {
  let since: number | undefined;
  const record = (why: string, ms: number): void => {
    const measured = { ...attributes, [keys.queue]: why };
    instruments?.record('queueDuration', seconds(ms), measured, context);
  };
  return {
    /** The wait of a request. */
    add: ({ why, waitedMs }: Extract<AgentEvent, { type: 'admitted' }>): void => {
      record(why, waitedMs);
    },
    start: () => {
      since = now();
    },
    stop: () => {
      if (since === undefined) return;
      record('calls', now() - since);
      since = undefined;
    },
  };
};
