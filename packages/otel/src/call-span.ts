import {
  type Attributes,
  type Context as TraceContext,
  context as contexts,
  createContextKey,
  diag,
  INVALID_SPAN_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import {
  type AgentEvent,
  type CallInfo,
  isMillraceError,
  type Layer,
  type Context,
  type Reply,
  type Usage,
} from 'millrace';
import { isResumed } from 'millrace/call';
import type { Cost } from 'millrace/traffic';
import {
  catchError,
  defer,
  dematerialize,
  EMPTY,
  filter,
  ignoreElements,
  materialize,
  merge,
  type Observable,
  tap,
} from 'rxjs';
import { timeOf } from './active-context.js';
import {
  finishReason,
  isToolCall,
  type Redact,
  toAnswer,
  toJson,
  toMessages,
  toParts,
} from './content.js';
import { keys, operations } from './conventions.js';
import type { Instruments, Telemetry } from './instruments.js';
import {
  leave,
  type Settings,
  type Share,
  shareOf,
  type TracedCall,
  type Tracing,
} from './settings.js';
import { spanEventOf } from './span-events.js';

/** Marks the active context of a tool step with its key, also for spans that the tool makes itself. */
export const withinStep = createContextKey('millrace: step');

export const stepKey = (callId: string, stepId: string): string => `${callId} ${stepId}`;

/** Calls a function of the program, if there is one. An error is logged: it must not fail a call. */
export const harmless = <Value, Result, Otherwise>(
  option: string,
  work: ((value: Value) => Result) | undefined,
  otherwise: Otherwise,
): ((value: Value) => Result | Otherwise) => {
  return (value) => {
    try {
      return work?.(value) ?? otherwise;
    } catch (cause) {
      diag.error(`otel(): '${option}' threw an error.`, cause);
      return otherwise;
    }
  };
};

/** Traces each call, from its subscription until it ends. */
export const traceCalls =
  (tracing: Tracing): NonNullable<Layer['record']> =>
  (context) =>
  (call$) =>
    defer(() => {
      const share = shareOf(tracing, context);
      if (share === undefined) return call$;
      const { watch$, end, fail, abort } = beginCall(tracing, share, context);
      // The call ends the watch: its end is a value until then.
      return merge(watch$, call$.pipe(materialize())).pipe(
        dematerialize(),
        tap({ complete: end, error: fail, unsubscribe: abort }),
      );
    });

const beginCall = (tracing: Tracing, share: Share, context: Context) => {
  const traced = startCall(tracing, share, context);
  const { span, instruments, redact } = traced;
  const isWatched = span.isRecording() || instruments !== undefined;
  const finish = endingOf(tracing, traced, context);
  let reply: Reply | undefined;
  const end = (): void => finish(reply && replyAttributes(reply, redact));
  const see = (event: AgentEvent): void => {
    if (event.type === 'postCall') ({ reply } = event);
    if (event.type === 'queued' && event.why === 'calls') traced.queue.start();
    if (event.type === 'admitted' && event.why !== 'calls') traced.queue.add(event);
    if (event.type === 'failedCallCost') span.setAttributes(costAttributes(event.cost));
    note(span, redact, event);
  };
  return {
    // Without observers, the core creates no events.
    watch$: isWatched ? watched$(context, span, see) : EMPTY,
    end,
    fail: (cause: unknown) => {
      fail(span, cause, redact);
      finish({}, errorTypeOf(cause));
    },
    // A subscriber may leave with the reply.
    abort: () => (reply === undefined ? finish({ [keys.reason]: 'aborted' }) : end()),
  };
};

const startCall = (tracing: Tracing, share: Share, context: Context): TracedCall => {
  const { info: call, scheduler, local, interruption } = context;
  const now = () => scheduler.now();
  const startedAt = now();
  const outer = contexts.active();
  const parent = parentOf(tracing, share, context, outer);
  const agentName = call.agent.at(-1) ?? '';
  const shared = sharedAttributes(share, call);
  const resumed = isResumed(context);
  const attributes = {
    ...{ ...shared, ...attributesOf(call), [keys.agentName]: agentName },
    ...(resumed && { [keys.resumed]: true }),
  };
  const name = `${operations.call} ${agentName}`;
  const span = startSpan(share, name, SpanKind.INTERNAL, startedAt, attributes, parent);
  const own = trace.setSpan(parent, span);
  const queue = createQueueTimer(share.instruments, now, { [keys.agentName]: agentName }, own);
  const traced = {
    ...share,
    ...{ span, context: own, outer, agentName, shared, startedAt, now, queue },
    redact: span.isRecording() ? share.redact : undefined,
    isInterrupted: () => interruption.current !== undefined,
  };
  local(tracing.parents).set(call.callId, own);
  local(tracing.traced).current = traced;
  return traced;
};

/** Starts a span; without a tracer, one that records nothing and stands for its parent. */
export const startSpan = (
  { tracer }: Pick<Telemetry, 'tracer'>,
  name: string,
  kind: SpanKind,
  at: number,
  attributes: Attributes,
  parent: TraceContext,
): Span =>
  tracer?.startSpan(name, { kind, startTime: timeOf(at), attributes }, parent) ??
  trace.wrapSpanContext(trace.getSpanContext(parent) ?? INVALID_SPAN_CONTEXT);

/** Ends the span, with attributes and the type of its error. */
const endingOf = (
  { parents }: Tracing,
  { span, context: own, instruments, agentName, startedAt, now, queue }: TracedCall,
  context: Context,
) => {
  return (attributes: Attributes = {}, errorType?: string): void => {
    context.local(parents).delete(context.info.callId);
    leave(context);
    queue.stop();
    const endedAt = now();
    span.setAttributes(attributes);
    span.end(timeOf(endedAt));
    const measured = { [keys.agentName]: agentName };
    instruments?.end('call', endedAt - startedAt, measured, errorType, own);
  };
};

/** A call of a tool is below its step; with the active span of the tool, if it made one. Others are below what was active. */
const parentOf = (
  { parents }: Tracing,
  { isActive, parent }: Share,
  context: Context,
  active: TraceContext,
): TraceContext => {
  const { info, local } = context;
  const { parentId, parentStep = '' } = info;
  if (parentId === undefined) return parent(info) ?? active;
  const key = stepKey(parentId, parentStep);
  if (isActive && active.getValue(withinStep) === key) return active;
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
  { info: call, events$, interruption, scheduler }: Context,
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

const note = (span: Span, redact: Redact | undefined, event: AgentEvent): void => {
  if (!span.isRecording()) return;
  if (event.type === 'preCall' && redact !== undefined) {
    span.setAttribute(
      keys.inputMessages,
      toJson(() => toMessages(event.input, redact)),
    );
  }
  const attributes = spanEventOf(event, redact);
  if (attributes !== undefined) {
    span.addEvent(`millrace.${event.type}`, attributes, timeOf(event.at));
  }
};

const replyAttributes = (
  { reason, iterations, finish, usage, content, cost }: Reply,
  redact: Redact | undefined,
): Attributes => {
  const reported = finishReason(finish, content.some(isToolCall));
  return {
    ...usageAttributes(usage),
    ...(cost !== undefined && costAttributes(cost)),
    [keys.finishReasons]: [reported],
    [keys.reason]: reason,
    [keys.iterations]: iterations,
    ...(reason === 'suspended' && { [keys.suspended]: true }),
    ...(redact !== undefined && {
      [keys.outputMessages]: toJson(() => toAnswer(toParts(content, redact), reported)),
    }),
  };
};

const costAttributes = ({ currency, total, atLeast }: Cost): Attributes => ({
  [keys.costCurrency]: currency,
  [keys.costAtLeast]: atLeast,
  ...(total !== undefined && { [keys.cost]: total }),
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

/** Marks a span as failed. The message of an error may quote content. */
export const fail = (span: Span, cause: unknown, redact: Redact | undefined): void => {
  const message =
    cause instanceof Error && redact !== undefined ? redact(cause.message) : undefined;
  span.setAttribute(keys.errorType, errorTypeOf(cause));
  span.setStatus({ code: SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
};

const createQueueTimer = (
  instruments: Instruments | undefined,
  now: () => number,
  attributes: Attributes,
  context: TraceContext,
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
