import {
  type Attributes,
  context as contexts,
  type Span,
  SpanKind,
  trace,
} from '@opentelemetry/api';
import {
  addUsage,
  type Layer,
  type Model,
  type ModelChunk,
  type ModelContext,
  type ModelReport,
  type ModelRequest,
  MillraceError,
  noUsage,
  type Usage,
} from 'millrace';
import { defined } from 'millrace/values';
import { defer, type Observable, tap } from 'rxjs';
import { standIn, timeOf, within$ } from './active-context.js';
import {
  errorTypeOf,
  fail,
  inputTokens,
  seconds,
  startSpan,
  usageAttributes,
} from './call-span.js';
import {
  type Collector,
  createCollector,
  finishReason,
  isToolCall,
  toAnswer,
  toJson,
  toMessages,
} from './content.js';
import { keys, operations } from './conventions.js';
import type { Histograms } from './instruments.js';
import type { TracedCall, Tracing } from './settings.js';

/** Traces every attempt of a request, with what `retry` and `fallback` report. */
export const traceRequests =
  ({ traced }: Tracing): NonNullable<Layer['model']> =>
  (context) =>
  (model) => ({
    ...model,
    stream$: (request, given) => {
      const { current } = context.local(traced);
      return current === undefined
        ? model.stream$(request, given)
        : defer(() => request$(current, model, request, given));
    },
  });

const request$ = (
  traced: TracedCall,
  model: Model,
  request: ModelRequest,
  given: ModelContext,
): Observable<ModelChunk> => {
  const attempts = createAttempts(traced, model.name, requestAttributes(traced, request, given));
  const { outer, context } = traced;
  const report: ModelContext['report'] = (event) => {
    attempts.report(event);
    contexts.with(outer, () => given.report(event));
  };
  const answer$ = () => model.stream$(request, { ...given, report });
  const sent$ = traced.isActive
    ? within$(trace.setSpan(context, standIn(attempts.span)), outer, answer$)
    : defer(answer$);
  return sent$.pipe(
    tap({
      next: attempts.take,
      error: attempts.fail,
      complete: attempts.complete,
      unsubscribe: attempts.cut,
    }),
  );
};

/** Milliseconds by which a timer may fire early, by the clock: the two round differently. */
const earlyMs = 2;

/** The attempts of one request: each begins when the one before has failed, and its wait is over. */
const createAttempts = (traced: TracedCall, model: string, attributes: Attributes) => {
  const { now } = traced;
  let current = createAttempt(traced, model, attributes, 1, now());
  let count = 1;
  let next: { readonly model: string; readonly at: number } | undefined;
  const begin = (): void => {
    if (next === undefined) return;
    count += 1;
    current = createAttempt(traced, next.model, attributes, count, Math.min(next.at, now()));
    next = undefined;
  };
  const beginIfDue = (): void => {
    if (next !== undefined && now() + earlyMs >= next.at) begin();
  };
  return {
    /** The span of the current attempt, which may begin with this: the first to know may be a client's own span. */
    span: (): Span => {
      beginIfDue();
      return current.span;
    },
    report: (event: ModelReport): void => {
      if (event.type !== 'modelRetry' && event.type !== 'modelFallback') return;
      begin();
      current.fail(event.error);
      next =
        event.type === 'modelRetry'
          ? { model: event.model, at: now() + event.waitMs }
          : { model: event.to, at: now() };
    },
    take: (chunk: ModelChunk): void => {
      begin();
      current.take(chunk);
    },
    fail: (cause: unknown): void => {
      begin();
      current.fail(cause);
    },
    complete: (): void => {
      begin();
      current.complete();
    },
    cut: (): void => {
      // A retry that was due, but is not later than this, was not sent.
      if (next !== undefined && now() > next.at) begin();
      current.cut(traced.isInterrupted() ? 'interrupted' : 'unsubscribed');
    },
  };
};

const createAttempt = (
  traced: TracedCall,
  model: string,
  attributes: Attributes,
  nth: number,
  startedAt: number,
) => {
  const { redact, context, now } = traced;
  const metered = meteredAttributes(traced, model);
  const span = startSpan(
    traced,
    `${operations.request} ${model}`,
    SpanKind.CLIENT,
    startedAt,
    { ...attributes, ...metered, [keys.attempt]: nth },
    context,
  );
  const answer = createAnswer(redact === undefined ? undefined : createCollector(redact));
  let isOver = false;
  const end = ({ cause, cut }: { readonly cause?: unknown; readonly cut?: string }): void => {
    if (isOver) return;
    isOver = true;
    const endedAt = now();
    if (cause !== undefined) fail(span, cause, redact);
    span.setAttributes(answerAttributes(answer, startedAt, cut));
    span.end(timeOf(endedAt));
    const errorType = cause === undefined ? undefined : errorTypeOf(cause);
    measure(traced, metered, { answer, startedAt, endedAt, errorType }, span);
  };
  return {
    span,
    take: (chunk: ModelChunk): void => answer.take(chunk, now()),
    fail: (cause: unknown): void => end({ cause }),
    complete: (): void => end(answer.finish === undefined ? { cause: incomplete() } : {}),
    cut: (cut: string): void => end({ cut }),
  };
};

const answerAttributes = (
  { usage, finish, firstAt, collector }: AnswerSoFar,
  startedAt: number,
  cut: string | undefined,
): Attributes => ({
  ...(usage !== undefined && usageAttributes(usage)),
  ...(finish !== undefined && { [keys.finishReasons]: [finish] }),
  ...(firstAt !== undefined && { [keys.timeToFirstChunk]: seconds(firstAt - startedAt) }),
  ...(cut !== undefined && { [keys.cut]: cut }),
  ...(collector !== undefined && {
    [keys.outputMessages]: toJson(() => toAnswer(collector.parts(), finish ?? cut ?? 'error')),
  }),
});

const incomplete = (): MillraceError =>
  new MillraceError('invalidResponse', 'The stream ended without a finish reason.');

interface AnswerSoFar {
  readonly collector: Collector | undefined;
  readonly usage: Usage | undefined;
  readonly finish: string | undefined;
  readonly firstAt: number | undefined;
  take(chunk: ModelChunk, at: number): void;
}

const createAnswer = (collector: Collector | undefined): AnswerSoFar => {
  let before = noUsage;
  let latest: Usage | undefined;
  let finish: Parameters<typeof finishReason>[0] | undefined;
  let hasCalls = false;
  let firstAt: number | undefined;
  return {
    collector,
    get usage() {
      return latest === undefined ? undefined : addUsage(before, latest);
    },
    get finish() {
      return finish && finishReason(finish, hasCalls);
    },
    get firstAt() {
      return firstAt;
    },
    take: (chunk, at) => {
      collector?.add(chunk);
      if (chunk.type !== 'restart') firstAt ??= at;
      if (chunk.type === 'finish') ({ finish } = chunk);
      if (chunk.type === 'toolCall' || (chunk.type === 'block' && isToolCall(chunk.block)))
        hasCalls = true;
      if (chunk.type === 'restart') hasCalls = false;
      if (chunk.type === 'usage') latest = { ...(latest ?? noUsage), ...defined(chunk.usage) };
      if (chunk.type === 'restart' && latest !== undefined) {
        before = addUsage(before, latest);
        latest = noUsage;
      }
    },
  };
};

const requestAttributes = (
  { shared, redact }: TracedCall,
  { messages, system, temperature, maxTokens, stopSequences, outputSchema }: ModelRequest,
  { stepId, callId = '' }: ModelContext,
): Attributes => ({
  ...shared,
  [keys.stream]: true,
  // As the journal names it, without the id of the call.
  [keys.step]: stepId.startsWith(`${callId}/`) ? stepId.slice(callId.length + 1) : stepId,
  ...(temperature !== undefined && { [keys.temperature]: temperature }),
  ...(maxTokens !== undefined && { [keys.maxTokens]: maxTokens }),
  ...(stopSequences !== undefined && { [keys.stopSequences]: [...stopSequences] }),
  ...(outputSchema !== undefined && { [keys.outputType]: 'json' }),
  ...(redact !== undefined && {
    [keys.inputMessages]: toJson(() => toMessages(messages, redact)),
    ...(system !== undefined && {
      [keys.systemInstructions]: toJson(() => [{ type: 'text', content: redact(system) }]),
    }),
  }),
});

const meteredAttributes = ({ provider }: TracedCall, model: string): Attributes => ({
  [keys.operation]: operations.request,
  [keys.requestModel]: model,
  // The conventions require a provider.
  [keys.provider]: provider(model) ?? providerOf(model) ?? 'unknown',
});

/** Providers, and how the names of their models begin. */
const vendors: readonly (readonly [string, RegExp])[] = [
  ['openai', /^(chat)?gpt|^o\d/],
  ['anthropic', /^claude/],
  ['gcp.gemini', /^gemini/],
  ['mistral_ai', /^\w*stral/],
  ['deepseek', /^deepseek/],
  ['x_ai', /^grok/],
];

const providerOf = (model: string): string | undefined =>
  vendors.find(([, names]) => names.test(model))?.[0];

interface Measured {
  readonly answer: AnswerSoFar;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly errorType: string | undefined;
}

const measure = (
  { instruments, context: parent }: TracedCall,
  attributes: Attributes,
  { answer: { firstAt, usage }, startedAt, endedAt, errorType }: Measured,
  span: Span,
): void => {
  if (instruments === undefined) return;
  const context = trace.setSpan(parent, span);
  const record = (name: Histograms, value: number, more: Attributes = {}): void =>
    instruments.record(name, value, { ...attributes, ...more }, context);
  instruments.end('request', endedAt - startedAt, attributes, errorType, context);
  if (firstAt !== undefined) record('timeToFirstChunk', seconds(firstAt - startedAt));
  if (usage !== undefined) {
    record('tokens', inputTokens(usage), { [keys.tokenType]: 'input' });
    record('tokens', usage.outputTokens, { [keys.tokenType]: 'output' });
  }
};
