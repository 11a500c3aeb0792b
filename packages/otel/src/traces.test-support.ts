import {
  type AttributeValue,
  type Attributes,
  context,
  SpanKind,
  SpanStatusCode,
} from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  type Sampler,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { keys } from './conventions.js';

/** Makes contexts active, as SDKs do. */
export const useContextManager = (): void => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
};

/** Providers that keep spans and metrics in memory: options of `otel`. */
export const inMemory = (options: { readonly sampler?: Sampler } = {}) => {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({
    ...options,
    spanProcessors: [new SimpleSpanProcessor(exporter)],
  });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 2 ** 30,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  const scopeMetrics = async () => {
    await reader.forceFlush();
    const latest = metricExporter.getMetrics().at(-1);
    await meterProvider.shutdown();
    return latest?.scopeMetrics ?? [];
  };
  return {
    providers: { tracerProvider, meterProvider },
    tracer: tracerProvider.getTracer('test'),
    spans,
    tree: (...more: readonly string[]) => treeOf(spans(), more),
    /** The data points by the name of their metric. */
    metrics: async () => (await scopeMetrics()).flatMap(({ metrics }) => metrics),
    scopeMetrics,
  };
};

/** Attributes that a tree shows. */
const shown: readonly string[] = [
  keys.errorType,
  keys.cut,
  keys.reason,
  keys.suspended,
  keys.resumed,
];

/** Spans as an indented outline: name, milliseconds, attributes, then links and events in lines of their own. */
export const treeOf = (spans: readonly ReadableSpan[], more: readonly string[] = []): string[] => {
  const ids = new Set(spans.map((span) => span.spanContext().spanId));
  const byStart = spans.toSorted((a, b) => msOf(a.startTime) - msOf(b.startTime));
  const childrenOf = (parent: string | undefined): readonly ReadableSpan[] =>
    byStart.filter(({ parentSpanContext }) => {
      const id = parentSpanContext?.spanId;
      return id === parent || (parent === undefined && id !== undefined && !ids.has(id));
    });
  const linesOf = (span: ReadableSpan, indent: string): string[] => [
    indent + lineOf(span, [...shown, ...more]),
    ...span.links.map(
      ({ attributes }) =>
        `${indent}  ~ ${String(attributes?.[keys.link])} ${String(attributes?.[keys.callId])}`,
    ),
    ...span.events.map(
      ({ name, attributes, time }) => `${indent}  ! ${name} ${msOf(time)}${listOf(attributes)}`,
    ),
    ...childrenOf(span.spanContext().spanId).flatMap((child) => linesOf(child, `${indent}  `)),
  ];
  return childrenOf(undefined).flatMap((root) => linesOf(root, ''));
};

const lineOf = (span: ReadableSpan, wanted: readonly string[]): string => {
  const { name, kind, status, attributes } = span;
  const parts = [
    name,
    `${msOf(span.startTime)}-${msOf(span.endTime)}`,
    ...(kind === SpanKind.CLIENT ? ['CLIENT'] : []),
    ...(status.code === SpanStatusCode.ERROR ? ['ERROR'] : []),
  ];
  const chosen = Object.entries(attributes).filter(([key]) => wanted.includes(key));
  return parts.join(' ') + listOf(Object.fromEntries(chosen));
};

const listOf = (attributes: Attributes = {}): string =>
  Object.entries(attributes)
    .map(([key, value]) => ` ${key.replace(/^(?:millrace|gen_ai)\./u, '')}=${show(value)}`)
    .join('');

const show = (value: AttributeValue | undefined): string => String(value);

const msOf = ([seconds, nanos]: readonly [number, number]): number => seconds * 1_000 + nanos / 1e6;
