import {
  createTraceState,
  isSpanContextValid,
  type Span,
  type SpanContext,
} from '@opentelemetry/api';
import type { CallInfo, Layer, StepForm } from 'millrace';
import { isRecord } from 'millrace/values';
import { concatMap, defaultIfEmpty, of, tap } from 'rxjs';
import { keys } from './conventions.js';
import type { Tracing } from './settings.js';

/**
 * Links a resumed or forked call to its former span. A step records the span in the journal: what comes back for it is
 * that of the first process.
 */
export const linkCalls =
  ({ traced }: Tracing): NonNullable<Layer['call']> =>
  (context) =>
  (next) =>
  (call) => {
    const { current } = context.local(traced);
    const isRecorded = context.layers.some(({ name }) => name === 'journal');
    if (current?.span.isRecording() !== true || !isRecorded) return next(call);
    const origin$ = context.perform<unknown>({
      kind: 'otel',
      id: current.step,
      input: undefined,
      run: () => of(originOf(context.info, current.span.spanContext())),
      // Calls that began without the layer are resumed without this step.
      optional: true,
      form: originForm,
    });
    return origin$.pipe(
      defaultIfEmpty(undefined),
      tap((origin) => link(current.span, context.info, origin)),
      concatMap(() => next(call)),
    );
  };

/** The span of a call, as the journal records it. */
const originOf = ({ callId }: CallInfo, { traceState, ...span }: SpanContext) => ({
  call: callId,
  traceId: span.traceId,
  spanId: span.spanId,
  traceFlags: span.traceFlags,
  tracestate: traceState?.serialize() ?? '',
});

const originForm: StepForm<unknown> = { isWritten: () => true, read: (written) => written };

/** A damaged record costs the link, not the call. */
const link = (span: Span, { callId }: CallInfo, origin: unknown): void => {
  const { call, traceId, spanId, traceFlags, tracestate } = isRecord(origin) ? origin : {};
  const former: SpanContext = {
    ...{ traceId: String(traceId), spanId: String(spanId), isRemote: true },
    traceFlags: traceFlags === 1 ? 1 : 0,
    ...(isText(tracestate) && { traceState: createTraceState(tracestate) }),
  };
  if (!isText(call) || !isSpanContextValid(former)) return;
  if (former.spanId === span.spanContext().spanId) return;
  const isFork = call !== callId;
  const attributes = { [keys.link]: isFork ? 'forked' : 'resumed', [keys.callId]: call };
  span.addLink({ context: former, attributes });
  span.setAttributes({ [keys.resumed]: true, ...(isFork && { [keys.forkedFrom]: call }) });
};

const isText = (value: unknown): value is string => typeof value === 'string';
