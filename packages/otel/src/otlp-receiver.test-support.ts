import { createServer, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { isRecord } from 'millrace/values';
import protobuf from 'protobufjs';

/** The messages of OTLP 1.x that spans, counters and histograms need, from its public specification. */
const schema = `
  syntax = "proto3";
  message AnyValue {
    oneof value {
      string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4;
      ArrayValue array_value = 5;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Scope { string name = 1; string version = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }

  message Traces { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schema_url = 3; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; fixed32 flags = 16;
    string name = 5; Kind kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10;
    repeated Event events = 11; uint32 dropped_events_count = 12;
    repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15;
  }
  enum Kind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; PRODUCER = 4; CONSUMER = 5; }
  message Event {
    fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; uint32 dropped_attributes_count = 4;
  }
  message Link {
    bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4;
    uint32 dropped_attributes_count = 5; fixed32 flags = 6;
  }
  message Status { string message = 2; Code code = 3; }
  enum Code { UNSET = 0; OK = 1; ERROR = 2; }

  message Metrics { repeated ResourceMetrics resource_metrics = 1; }
  message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; string schema_url = 3; }
  message ScopeMetrics { Scope scope = 1; repeated Metric metrics = 2; string schema_url = 3; }
  message Metric {
    string name = 1; string description = 2; string unit = 3;
    oneof data { Sum sum = 7; Histogram histogram = 9; }
  }
  enum Temporality { NONE = 0; DELTA = 1; CUMULATIVE = 2; }
  message Sum { repeated NumberPoint data_points = 1; Temporality aggregation_temporality = 2; bool is_monotonic = 3; }
  message Histogram { repeated HistogramPoint data_points = 1; Temporality aggregation_temporality = 2; }
  message Exemplar {
    repeated KeyValue filtered_attributes = 7; fixed64 time_unix_nano = 2;
    oneof value { double as_double = 3; sfixed64 as_int = 6; }
    bytes span_id = 4; bytes trace_id = 5;
  }
  message NumberPoint {
    repeated KeyValue attributes = 7; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
    oneof value { double as_double = 4; sfixed64 as_int = 6; }
    repeated Exemplar exemplars = 5; uint32 flags = 8;
  }
  message HistogramPoint {
    repeated KeyValue attributes = 9; fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
    fixed64 count = 4; optional double sum = 5; repeated fixed64 bucket_counts = 6; repeated double explicit_bounds = 7;
    repeated Exemplar exemplars = 8; uint32 flags = 10; optional double min = 11; optional double max = 12;
  }
`;

const { root } = protobuf.parse(schema);

/** Throws if a message has a field that the schema does not name, at any depth. */
const assertKnown = (type: protobuf.Type, body: Uint8Array): void => {
  const reader = protobuf.Reader.create(body);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    const field = type.fieldsById[tag >>> 3];
    if (field === undefined) throw new Error(`${type.name} has no field ${tag >>> 3}.`);
    if (field.resolve().resolvedType instanceof protobuf.Type) {
      assertKnown(field.resolvedType as protobuf.Type, reader.bytes());
    } else reader.skipType(tag & 7);
  }
};

const decoded = (name: 'Traces' | 'Metrics', body: Uint8Array): Record<string, unknown> => {
  const type = root.lookupType(name);
  assertKnown(type, body);
  return type.toObject(type.decode(body), { longs: String, enums: String, bytes: Array });
};

export interface ReceivedSpan {
  readonly name: string;
  readonly kind: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly status: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly time: bigint }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
}

type Raw = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Raw => (isRecord(value) ? value : {});

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const hex = (bytes: unknown, length: number): string => {
  const text = Buffer.from(list(bytes) as number[]).toString('hex');
  if (text.length !== 2 * length || /^0+$/u.test(text)) throw new Error(`Not an id: '${text}'.`);
  return text;
};

const valueOf = (raw: unknown): unknown => {
  const value = fields(raw);
  const [kind, ...more] = Object.keys(value);
  if (kind === undefined || more.length > 0) throw new Error(`Not a value: ${JSON.stringify(raw)}`);
  if (kind === 'arrayValue') return list(fields(value[kind])['values']).map(valueOf);
  return kind === 'intValue' ? Number(value[kind]) : value[kind];
};

const attributesOf = (attributes: unknown): Raw => {
  const entries = list(attributes).map((it): [string, unknown] => {
    const { key, value } = fields(it);
    if (typeof key !== 'string' || key === '') throw new Error('An attribute has no key.');
    return [key, valueOf(value)];
  });
  if (new Set(entries.map(([key]) => key)).size < entries.length) throw new Error('Repeated keys.');
  return Object.fromEntries(entries);
};

const nanosOf = (value: unknown): bigint => BigInt(typeof value === 'string' ? value : 0);

const toSpan = (value: unknown): ReceivedSpan => {
  const raw = fields(value);
  const { name, kind, parentSpanId, status } = raw;
  const start = nanosOf(raw['startTimeUnixNano']);
  const end = nanosOf(raw['endTimeUnixNano']);
  if (start === 0n || end < start) throw new Error(`Not a period: ${start}-${end}.`);
  return {
    ...{ name: String(name), kind: String(kind), start, end },
    traceId: hex(raw['traceId'], 16),
    spanId: hex(raw['spanId'], 8),
    parentSpanId: list(parentSpanId).length === 0 ? '' : hex(parentSpanId, 8),
    attributes: attributesOf(raw['attributes']),
    status: String(fields(status)['code'] ?? 'UNSET'),
    events: list(raw['events']).map((it) => {
      const event = fields(it);
      attributesOf(event['attributes']);
      return { name: String(event['name']), time: nanosOf(event['timeUnixNano']) };
    }),
    links: list(raw['links']).map((it) => {
      const link = fields(it);
      return { traceId: hex(link['traceId'], 16), spanId: hex(link['spanId'], 8) };
    }),
  };
};

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  /** The number of measurements, or the sum of a counter. */
  readonly count: number;
}

const toMetric = (value: unknown): ReceivedMetric => {
  const { name, unit, histogram, sum } = fields(value);
  const histograms = list(fields(histogram)['dataPoints']).map(fields);
  const sums = list(fields(sum)['dataPoints']).map(fields);
  for (const point of histograms) {
    const counts = list(point['bucketCounts']).map(Number);
    const total = counts.reduce((before, count) => before + count, 0);
    if (total !== Number(point['count'])) throw new Error('The buckets do not add up.');
    if (counts.length !== list(point['explicitBounds']).length + 1) throw new Error('No bounds.');
  }
  const points = [...histograms, ...sums];
  points.forEach((point) => attributesOf(point['attributes']));
  const countOf = (point: Raw): number =>
    Number(point['count'] ?? point['asInt'] ?? point['asDouble'] ?? 0);
  const count = points.reduce((before, point) => before + countOf(point), 0);
  return { name: String(name), unit: String(unit), count };
};

const bodyOf = async (request: IncomingMessage): Promise<Uint8Array> => {
  const parts: Uint8Array[] = [];
  for await (const part of request) parts.push(part as Uint8Array);
  return Buffer.concat(parts);
};

/** A receiver of OTLP over HTTP, which decodes and checks what it gets. Close it at the end. */
export const startReceiver = async () => {
  const spans: ReceivedSpan[] = [];
  const metrics: ReceivedMetric[] = [];
  const problems: string[] = [];
  const scopes = new Set<string>();
  const scoped = (groups: unknown, scopesOf: string, items: string): readonly unknown[] =>
    list(groups).flatMap((group) =>
      list(fields(group)[scopesOf]).flatMap((it) => {
        const { scope, ...own } = fields(it);
        scopes.add(String(fields(scope)['name']));
        return list(own[items]);
      }),
    );
  const receive = async (request: IncomingMessage): Promise<void> => {
    if (request.headers['content-type'] !== 'application/x-protobuf') throw new Error('No type.');
    const body = await bodyOf(request);
    if (request.url === '/v1/traces') {
      const { resourceSpans } = decoded('Traces', body);
      spans.push(...scoped(resourceSpans, 'scopeSpans', 'spans').map(toSpan));
    } else {
      const { resourceMetrics } = decoded('Metrics', body);
      metrics.push(...scoped(resourceMetrics, 'scopeMetrics', 'metrics').map(toMetric));
    }
  };
  const server = createServer((request, response) => {
    receive(request)
      .catch((cause: unknown) => problems.push(String(cause)))
      .finally(() => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    ...{ spans, metrics, problems, scopes },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};
