import {
  type Attributes,
  type Context,
  createNoopMeter,
  type Meter,
  type MeterProvider,
  metrics,
  ProxyTracer,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { counters, histograms, scopeName } from './conventions.js';

/** The name of a histogram. */
export type Histograms = keyof typeof histograms;

/** Records the metrics of calls. Durations are in seconds. */
export interface Instruments {
  record(name: Histograms, value: number, attributes: Attributes, context: Context): void;
  /** Counts a failure by its type. */
  fail(attributes: Attributes, context: Context): void;
}

/** Where spans and metrics go. */
export interface Telemetry {
  readonly tracer: Tracer;
  /** Absent without a meter that records. */
  readonly instruments: Instruments | undefined;
}

export interface Providers {
  readonly tracerProvider?: TracerProvider | undefined;
  readonly meterProvider?: MeterProvider | undefined;
}

/**
 * Returns a function that looks up where spans and metrics go, or `undefined` while nothing records them. Looked up for
 * each call: programs register providers after their agents were created.
 */
export const telemetryOf = ({
  tracerProvider,
  meterProvider,
}: Providers): (() => Telemetry | undefined) => {
  let known: { readonly meter: Meter; readonly instruments: Instruments } | undefined;
  return () => {
    const tracer = (tracerProvider ?? trace).getTracer(scopeName);
    const meter = (meterProvider ?? metrics).getMeter(scopeName);
    const isMetered = meter !== createNoopMeter();
    if (!isMetered && tracer instanceof ProxyTracer) return undefined;
    if (!isMetered) return { tracer, instruments: undefined };
    if (known?.meter !== meter) known = { meter, instruments: createInstruments(meter) };
    return { tracer, instruments: known.instruments };
  };
};

const createInstruments = (meter: Meter): Instruments => {
  const histogram = ({ name, boundaries, ...options }: (typeof histograms)[Histograms]) =>
    meter.createHistogram(name, {
      ...options,
      advice: { explicitBucketBoundaries: [...boundaries] },
    });
  const made: Record<Histograms, ReturnType<typeof histogram>> = {
    callDuration: histogram(histograms.callDuration),
    requestDuration: histogram(histograms.requestDuration),
    timeToFirstChunk: histogram(histograms.timeToFirstChunk),
    tokens: histogram(histograms.tokens),
    toolDuration: histogram(histograms.toolDuration),
    queueDuration: histogram(histograms.queueDuration),
  };
  const { name, ...options } = counters.errors;
  const errors = meter.createCounter(name, options);
  return {
    record: (histogramName, value, attributes, context) =>
      made[histogramName].record(value, attributes, context),
    fail: (attributes, context) => errors.add(1, attributes, context),
  };
};
