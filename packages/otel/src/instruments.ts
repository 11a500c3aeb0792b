import {
  type Attributes,
  type Context,
  createNoopMeter,
  type Histogram,
  type Meter,
  type MeterProvider,
  metrics,
  ProxyTracer,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { counters, histograms, keys, operations, scopeName, scopeVersion } from './conventions.js';

/** The name of a histogram. */
export type Histograms = keyof typeof histograms;

/** Records the metrics of calls. */
export interface Instruments {
  record(name: Histograms, value: number, attributes: Attributes, context: Context): void;
  /** Records the duration of a call, request or tool in milliseconds, and counts its failure. */
  end(
    what: keyof typeof operations,
    ms: number,
    attributes: Attributes,
    errorType: string | undefined,
    context: Context,
  ): void;
}

/** Where spans and metrics go. */
export interface Telemetry {
  /** Absent without a provider of spans. */
  readonly tracer: Tracer | undefined;
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
  return () => {
    const found = (tracerProvider ?? trace).getTracer(scopeName, scopeVersion);
    const tracer = found instanceof ProxyTracer ? undefined : found;
    const meter = (meterProvider ?? metrics).getMeter(scopeName, scopeVersion);
    const instruments = meter === createNoopMeter() ? undefined : instrumentsOf(meter);
    return tracer === undefined && instruments === undefined ? undefined : { tracer, instruments };
  };
};

const made = new WeakMap<Meter, Instruments>();

/** The instruments of a meter, the same ones each time. */
const instrumentsOf = (meter: Meter): Instruments => {
  const instruments = made.get(meter) ?? createInstruments(meter);
  made.set(meter, instruments);
  return instruments;
};

const createInstruments = (meter: Meter): Instruments => {
  const known = new Map<Histograms, Histogram>();
  const histogramOf = (histogram: Histograms): Histogram => {
    const { name, boundaries, ...options } = histograms[histogram];
    const advice = { explicitBucketBoundaries: [...boundaries] };
    const own = known.get(histogram) ?? meter.createHistogram(name, { ...options, advice });
    known.set(histogram, own);
    return own;
  };
  const { name: errorsName, ...options } = counters.errors;
  const errors = meter.createCounter(errorsName, options);
  const record: Instruments['record'] = (histogram, value, attributes, context) =>
    histogramOf(histogram).record(value, attributes, context);
  return {
    record,
    end: (what, ms, attributes, errorType, context) => {
      const failure = errorType !== undefined && { [keys.errorType]: errorType };
      record(`${what}Duration`, ms / 1_000, { ...attributes, ...failure }, context);
      if (failure) errors.add(1, { [keys.operation]: operations[what], ...failure }, context);
    },
  };
};
