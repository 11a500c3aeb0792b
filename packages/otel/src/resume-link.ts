import {
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
} from '@opentelemetry/api';
import type { CallInfo, Layer, StepForm } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import { concatMap, defaultIfEmpty, of, tap } from 'rxjs';
import { tracedCall } from './call-span.js';
import { keys } from './conventions.js';

/** The span of a call, as the journal records it. */
interface Origin {
  readonly call: string;
  readonly traceparent: string;
  readonly tracestate?: string;
}

/**
 * Links a resumed or forked call to its former span. A step records the span in the journal: what comes back for it is
 * that of the first process.
 */
export const linkCalls: NonNullable<Layer['call']> = (context) => (next) => (call) => {
  const { current } = context.local(tracedCall);
  const isRecorded = context.layers.some(({ name }) => name === 'journal');
  if (current?.span.isRecording() !== true || !isRecorded) return next(call);
  const origin$ = context.perform<Origin | undefined>({
    kind: 'otel',
    id: 'otel',
    input: undefined,
    run: () => of(originOf(context.call, current.span.spanContext())),
    // Calls that began without the layer are resumed without this step.
    optional: true,
    form: originForm,
  });
  return origin$.pipe(
    defaultIfEmpty(undefined),
    tap((origin) => link(current.span, context.call, origin)),
    concatMap(() => next(call)),
  );
};

const originOf = ({ callId }: CallInfo, span: SpanContext): Origin => {
  const { traceId, spanId, traceFlags, traceState } = span;
  const flags = traceFlags.toString(16).padStart(2, '0');
  const state = traceState?.serialize() ?? '';
  return {
    call: callId,
    traceparent: `00-${traceId}-${spanId}-${flags}`,
    ...(state !== '' && { tracestate: state }),
  };
};

/** A damaged record costs the link, not the call. */
const originForm: StepForm<Origin | undefined> = {
  isWritten: () => true,
  read: (written) => {
    const { call, traceparent, tracestate } = isRecord(written) ? written : {};
    if (typeof call !== 'string' || typeof traceparent !== 'string') return undefined;
    return { call, traceparent, ...(typeof tracestate === 'string' && { tracestate }) };
  },
};

const link = (span: Span, { callId }: CallInfo, origin: Origin | undefined): void => {
  const former = origin && spanContextIn(origin);
  if (origin === undefined || former === undefined) return;
  if (former.spanId === span.spanContext().spanId) return;
  const isFork = origin.call !== callId;
  const attributes = { [keys.link]: isFork ? 'forked' : 'resumed', [keys.callId]: origin.call };
  span.addLink({ context: former, attributes });
  span.setAttributes({ [keys.resumed]: true, ...(isFork && { [keys.forkedFrom]: origin.call }) });
};

const spanContextIn = ({ traceparent, tracestate }: Origin): SpanContext | undefined => {
  const [, traceId = '', spanId = '', flags = ''] =
    /^00-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})$/.exec(traceparent) ?? [];
  const former = {
    ...{ traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true },
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
  return isSpanContextValid(former) ? former : undefined;
};
