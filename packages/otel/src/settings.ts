import type { Attributes, Context as TraceContext, Span } from '@opentelemetry/api';
import {
  type AgentEvent,
  type CallInfo,
  type Cell,
  cell,
  type Layer,
  type Context,
} from 'millrace';
import { lineageOf } from 'millrace/call';
import { identity } from 'rxjs';
import type { Redact } from './content.js';
import type { Telemetry } from './instruments.js';

/** The options of an `otel()`, checked and completed. None of the functions throws. */
export interface Settings {
  /** Absent if no content is captured. */
  readonly redact: Redact | undefined;
  readonly attributes: (call: CallInfo) => Attributes | undefined;
  readonly parent: (call: CallInfo) => TraceContext | undefined;
  readonly provider: (model: string) => string | undefined;
}

/** One `otel()`: its settings, and where its layers keep what they know of a call. */
export interface Tracing extends Settings {
  readonly telemetry: () => Telemetry | undefined;
  /** The traced call; without one, nothing is recorded. */
  readonly traced: Cell<{ current?: TracedCall }>;
  /** The contexts of the calls and tool steps of a family, for the calls that they make. */
  readonly parents: Cell<Map<string, TraceContext>>;
}

/** The layers of each `otel()`: those of a call find each other here. */
export const tracings = new WeakMap<Layer, Tracing>();

/** The part of one `otel()` in a call. */
export interface Share extends Settings, Telemetry {
  /** The name of the step that records the span: the first `otel()` of a call has `otel`. */
  readonly step: string;
  /** Whether its spans are active while tools run and requests are sent: those of the first that makes spans. */
  readonly isActive: boolean;
}

/** The span of a call, for the spans of its requests and tools. */
export interface TracedCall extends Share {
  readonly span: Span;
  /** Has the span of the call. */
  readonly context: TraceContext;
  /** The context in which the call was subscribed. */
  readonly outer: TraceContext;
  readonly agentName: string;
  /** The attributes of all spans of the call. */
  readonly shared: Attributes;
  readonly startedAt: number;
  readonly now: () => number;
  readonly isInterrupted: () => boolean;
  /** Measures waits for a limit: that of the call ends with its next step, or with the call. */
  readonly queue: {
    add(event: Extract<AgentEvent, { type: 'admitted' }>): void;
    start(): void;
    stop(): void;
  };
}

/** The `otel()` of each call of a family. */
const present = cell('family', () => new Map<string, readonly Tracing[]>());

export const leave = ({ info, local }: Context): void => void local(present).delete(info.callId);

/**
 * The part of an `otel()` in a call, or `undefined` if it records nothing. Only the outermost one makes spans for a
 * tracer, and metrics for a meter, with the settings of all that share the tracer. Content is strict: an `otel()` of a
 * sub-agent also decides on what those of its callers capture.
 */
export const shareOf = (own: Tracing, context: Context): Share | undefined => {
  const telemetry = own.telemetry();
  if (telemetry === undefined) return undefined;
  const { info, layers, local } = context;
  const all = [...new Set(layers.flatMap((layer) => tracings.get(layer) ?? [])).add(own)];
  const known = local(present).set(info.callId, all);
  const order = all.indexOf(own);
  const earlier = all.slice(0, order).flatMap((other) => other.telemetry() ?? []);
  const tracer = earlier.some((other) => other.tracer === telemetry.tracer)
    ? undefined
    : telemetry.tracer;
  const instruments = earlier.some((other) => other.instruments === telemetry.instruments)
    ? undefined
    : telemetry.instruments;
  if (tracer === undefined && instruments === undefined) return undefined;
  const reach = (tracing: Tracing): number =>
    lineageOf(info).filter(({ callId }) => known.get(callId)?.includes(tracing)).length;
  const sharing = all.filter(
    (other) =>
      other === own || (telemetry.tracer && other.telemetry()?.tracer === telemetry.tracer),
  );
  const strict = all.filter((other) => sharing.includes(other) || reach(other) < reach(own));
  return {
    tracer,
    instruments,
    step: `otel${order || ''}`,
    isActive: earlier.every((other) => other.tracer === undefined),
    redact: strict.every(({ redact }) => redact)
      ? (text) => strict.reduceRight((sofar, { redact = identity }) => redact(sofar), text)
      : undefined,
    attributes: (callInfo) =>
      sharing.reduce<Attributes>((outer, one) => ({ ...outer, ...one.attributes(callInfo) }), {}),
    parent: (callInfo) => innermost(sharing, (one) => one.parent(callInfo)),
    provider: (model) => innermost(sharing, (one) => one.provider(model)),
  };
};

const innermost = <T>(all: readonly Settings[], read: (one: Settings) => T | undefined) =>
  all.reduceRight<T | undefined>((found, one) => found ?? read(one), undefined);
