import type { Attributes, Context, MeterProvider, TracerProvider } from '@opentelemetry/api';
import { type CallInfo, cell, type Layer } from 'millrace';
import { checkOptions, having, isFunction, type Rule } from 'millrace/values';
import { identity } from 'rxjs';
import { harmless, traceCalls } from './call-span.js';
import { notCaptured } from './content.js';
import { telemetryOf } from './instruments.js';
import { traceRequests } from './request-span.js';
import { linkCalls } from './resume-link.js';
import { type Tracing, tracings } from './settings.js';
import { traceTools } from './tool-span.js';

/** Options of `otel`. Its functions must not throw; if one does, the error goes to the logger of OpenTelemetry. */
export interface OtelOptions {
  /**
   * Include messages, tool arguments, tool results and error messages in spans: `true`, or a function that redacts each
   * string. The keys and numbers of tool arguments are also redacted; roles, types and names are not. Default: false.
   */
  readonly content?: boolean | ((text: string) => string) | undefined;
  /** Attributes of all spans of a call, such as a tenant. Metrics do not have them. Default: none. */
  readonly attributes?: ((call: CallInfo) => Attributes) | undefined;
  /**
   * The provider of a model, by its name. Default, also for `undefined`: that of well-known names, such as `gpt-…` and
   * `claude-…`, or `unknown`.
   */
  readonly provider?: ((model: string) => string | undefined) | undefined;
  /** The parent of calls that no tool makes. Default: the context that is active when the call is subscribed. */
  readonly parent?: ((call: CallInfo) => Context | undefined) | undefined;
  /** Default: the global provider. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Default: the global provider. */
  readonly meterProvider?: MeterProvider | undefined;
}

/**
 * Returns layers that record spans and metrics for calls, by the GenAI semantic conventions of OpenTelemetry: a span for each call, request to a
 * model and tool that runs. They also apply to sub-agents. Several `otel()` in one call, or in an agent and its sub-agents, record one set of spans
 * per tracer provider and one set of metrics per meter provider: see the README for whose options apply. Spans have the times of the call's
 * scheduler, in milliseconds. While no provider is registered, the layers do nothing. Errors with `config` if an option is invalid.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools, use: [otel()] });
 * ```
 */
export const otel = (options: OtelOptions = {}): readonly Layer[] => {
  checkOptions('otel()', options, rules);
  const { content = false, attributes, provider, parent, ...providers } = options;
  const telemetry = telemetryOf(providers);
  const redact = content === true ? identity<string> : content === false ? undefined : content;
  const tracing: Tracing = {
    telemetry,
    redact: redact && harmless('content', redact, notCaptured),
    attributes: harmless('attributes', attributes, undefined),
    provider: harmless('provider', provider, undefined),
    parent: harmless('parent', parent, undefined),
    traced: cell('call', () => ({})),
    parents: cell('family', () => new Map<string, Context>()),
  };
  return [
    // Outermost, so that it sees waits and failures of other layers.
    layerWhile(tracing, 'otel', 2, 'record', traceCalls(tracing)),
    // Within the journal at 30, so that replayed steps do not reach it, and outside of interrupts at 40.
    layerWhile(tracing, 'otelTools', 31, 'step', traceTools(tracing)),
    // After the history is read at 60: a step that the journal does not have ends its replay.
    layerWhile(tracing, 'otelLink', 61, 'call', linkCalls(tracing)),
    // Innermost: a layer that answers for a model makes no request.
    layerWhile(tracing, 'otelRequests', 1_000_000, 'model', traceRequests(tracing)),
  ];
};

/** A layer that has its part only while a provider is registered: without it, it costs a call nothing. */
const layerWhile = <Part extends 'record' | 'call' | 'step' | 'model'>(
  tracing: Tracing,
  name: string,
  priority: number,
  part: Part,
  own: Layer[Part],
): Layer => {
  const layer: Layer = {
    ...{ name, priority, inherit: true },
  };
  tracings.set(layer, tracing);
  return Object.defineProperty(layer, part, {
    enumerable: true,
    get: () => tracing.telemetry() && own,
  });
};

const rules: Readonly<Record<keyof OtelOptions, Rule>> = {
  content: [
    (value) => typeof value === 'boolean' || typeof value === 'function',
    'true, false or a function that redacts a string',
  ],
  attributes: isFunction,
  provider: isFunction,
  parent: isFunction,
  tracerProvider: having('getTracer', 'a TracerProvider'),
  meterProvider: having('getMeter', 'a MeterProvider'),
};
