import type { Attributes, Context, MeterProvider, TracerProvider } from '@opentelemetry/api';
import { type CallInfo, type Layer, on } from '@millrace/core';
import { checkOptions, having, isFunction, type Rule } from '@millrace/core/values';
import { identity } from 'rxjs';
import { harmless, type Settings, traceCalls } from './call-span.js';
import { notCaptured } from './content.js';
import { telemetryOf } from './instruments.js';
import { traceRequests } from './request-span.js';
import { linkCalls } from './resume-link.js';
import { traceTools } from './tool-span.js';

/** Options of `otel`. Its functions must not throw; if one does, the error goes to the logger of OpenTelemetry. */
export interface OtelOptions {
  /**
   * Whether spans have the messages, tool arguments, tool results and error messages: `true`, or a function that redacts
   * each string. Default: false.
   */
  readonly content?: boolean | ((text: string) => string);
  /** Attributes of all spans of a call, such as a tenant. Metrics do not have them. Default: none. */
  readonly attributes?: (call: CallInfo) => Attributes;
  /** The provider of a model, by its name. Default: that of well-known names, such as `gpt-…` and `claude-…`. */
  readonly provider?: (model: string) => string | undefined;
  /** The parent of calls that no tool makes. Default: the context that is active when the call is subscribed. */
  readonly parent?: (call: CallInfo) => Context | undefined;
  /** Default: the global provider. */
  readonly tracerProvider?: TracerProvider;
  /** Default: the global provider. */
  readonly meterProvider?: MeterProvider;
}

/**
 * Returns layers that make spans and metrics of calls, by the GenAI semantic conventions of OpenTelemetry: a span for each call, request to a model
 * and tool that runs. They also apply to sub-agents. Spans have the times of the call's scheduler, in milliseconds. While no provider is
 * registered, they do nothing. Errors with `config` if an option is invalid.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools, use: [otel()] });
 * ```
 */
export const otel = (options: OtelOptions = {}): readonly Layer[] => {
  checkOptions('otel()', options, rules);
  const { content = false, attributes, provider = providerOf, parent, ...providers } = options;
  const telemetry = telemetryOf(providers);
  const redact = content === true ? identity<string> : content === false ? undefined : content;
  const settings: Settings = {
    telemetry,
    redact: redact && harmless('content', redact, notCaptured),
    attributes: harmless('attributes', attributes ?? (() => ({})), {}),
    provider: harmless('provider', provider, undefined),
    parent: harmless('parent', parent ?? (() => undefined), undefined),
  };
  const whileRecording = (name: string, priority: number, parts: Parts): Layer =>
    layerWhile(() => telemetry() !== undefined, name, priority, parts);
  return [
    // Outermost, so that it sees waits and failures of other layers.
    whileRecording('otel', 2, { open: traceCalls(settings) }),
    // Within the journal at 30, so that replayed steps do not reach it, and outside of interrupts at 40.
    whileRecording('otelTools', 31, { step: traceTools }),
    // After the history is read at 60: a step that the journal does not have ends its replay.
    whileRecording('otelLink', 61, { call: linkCalls }),
    // Innermost: a layer that answers for a model makes no request.
    whileRecording('otelRequests', 1_000_000, { model: traceRequests }),
  ];
};

type Parts = Pick<Layer, 'open' | 'call' | 'step' | 'model'>;

/** A layer that has its parts only while a condition holds: without parts, it costs a call nothing. */
const layerWhile = (
  isNeeded: () => boolean,
  name: string,
  priority: number,
  parts: Parts,
): Layer => {
  const part = (own: unknown) => ({
    enumerable: true,
    get: () => (isNeeded() ? own : undefined),
  });
  return Object.defineProperties<Layer>(
    {
      // An interceptor cannot interrupt a call. With another layer, the core makes each step interruptible, which doubles
      // the cost of a question. This interceptor does nothing.
      ...on('preSummary', identity),
      ...{ name, priority, inherit: true, single: true },
    },
    Object.fromEntries(Object.entries(parts).map(([key, own]) => [key, part(own)])),
  );
};

const vendors: readonly (readonly [RegExp, string])[] = [
  [/^(?:gpt|chatgpt|o\d)(?:-|$)/u, 'openai'],
  [/^claude-/u, 'anthropic'],
  [/^gemini-/u, 'gcp.gemini'],
  [/^(?:mistral|magistral|codestral|ministral)-/u, 'mistral_ai'],
  [/^deepseek-/u, 'deepseek'],
  [/^grok-/u, 'x_ai'],
];

const providerOf = (model: string): string | undefined =>
  vendors.find(([names]) => names.test(model))?.[1];

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
