import { catchError, defer, map, type Observable, of, tap } from 'rxjs';
import { type Asking, type ModelAnswer, modelStep, type RequestEvents } from './ask.js';
import { deferWork } from '../flow/eventual.js';
import type { Call } from '../seams/call.js';
import type { MillraceErrorCode } from '../values/errors.js';
import { isMillraceError, messageOf, toMillraceError } from '../values/errors.js';
import { limitsOf } from '../flow/deadline.js';
import type { Context } from '../seams/layer.js';
import { textBlock, textOf, type UserMessage } from '../values/message.js';
import type { Model, ModelRequest } from '../models/model.js';
import { ready } from '../models/answer-tool.js';
import type { OpenRun } from '../run.js';
import { hasFields, isBoolean, isOne, isOptional, isString, isUsage } from '../values/shape.js';
import { noUsage, type Usage } from '../values/usage.js';

/** The outcome of a request beside the loop: plain JSON. */
export type Consulted =
  | {
      readonly status: 'answered';
      readonly text: string;
      /** Whether the answer reached its maximum of tokens. */
      readonly isCutShort: boolean;
      readonly usage: Usage;
    }
  | { readonly status: 'failed'; readonly why: string; readonly usage: Usage }
  /** Cut by an interrupt, or vetoed by an interceptor. */
  | { readonly status: 'cut'; readonly usage: Usage };

export interface Consultation {
  /** The phase that asks, such as `reflect`, for events and usage. */
  readonly phase: string;
  /** The position in the call, such as `3/reflect`. */
  readonly position: string;
  readonly request: ModelRequest;
  /** The model to ask. Default: that of the call. */
  readonly model?: Model | undefined;
  /** The message of a `warning` if the request fails; not repeated on replay. Default: no warning. */
  readonly warning?: (why: string) => string;
}

const isConsulted = (written: unknown): boolean =>
  [
    { status: isOne('answered'), text: isString, isCutShort: isOptional(isBoolean) },
    { status: isOne('failed'), why: isString },
    { status: isOne('cut') },
  ].some((fields) => hasFields(written, { ...fields, usage: isUsage }));

/**
 * Asks the model beside the loop, in a step, and emits the outcome. Counts no iteration and stores nothing. A failure
 * of the model is a value; an error of an interceptor fails the call.
 */
export const consult$ = (
  context: Context,
  call: Asking,
  { iteration }: Pick<OpenRun, 'iteration'>,
  { phase, position, request, model, warning }: Consultation,
): Observable<Consulted> => {
  const asked = model === undefined ? call : { ...call, model: ready(model) };
  const { work, cut } = modelStep(
    context,
    asked,
    { iteration },
    stageOf(phase),
    position,
    supported(request, asked),
  );
  return context.perform({
    kind: 'model',
    id: position,
    input: request,
    run: (attempt) =>
      deferWork(() => work(attempt)).pipe(
        map(read),
        catchError((error: unknown) => {
          const { usage = noUsage } = toMillraceError(error);
          if (isMillraceError(error) && lasting.includes(error.code)) throw error;
          return of<Consulted>({ status: 'failed', why: messageOf(error), usage });
        }),
        tap((outcome) => {
          const message = outcome.status === 'failed' ? warning?.(outcome.why) : undefined;
          if (message !== undefined) context.hooks.report(iteration, { type: 'warning', message });
        }),
      ),
    cut: (why) => defer(() => of(read(cut(why)))),
    form: { isWritten: isConsulted },
  });
};

export const instruction = (callId: string, position: string, text: string): UserMessage => ({
  id: `${callId}/${position}/instruction`,
  role: 'user',
  content: [textBlock(text)],
});

/** The limit of length is internal, so dropping it for a model without one needs no warning. */
const supported = ({ maxTokens, ...request }: ModelRequest, { model }: Asking): ModelRequest =>
  maxTokens === undefined || model.unsupported?.includes('maxTokens') === true
    ? request
    : { ...request, maxTokens };

/** Errors that are decisions, not failures of a model. */
const lasting: readonly MillraceErrorCode[] = ['interceptor', 'guardRejected', 'budget'];

const stageOf = (phase: string): RequestEvents => ({
  before: (request) => ({ type: 'prePlanning', phase, ...request }),
  chunk: { type: 'planningChunk', phase },
  after: (answered) => ({ type: 'postPlanning', phase, ...answered }),
});

const read = (response: ModelAnswer): Consulted => {
  const { usage } = response;
  if (response.status !== 'answered') return { status: 'cut', usage };
  const text = textOf(response.message).trim();
  if (response.halt !== undefined)
    return { status: 'failed', why: 'The request was stopped.', usage };
  if (response.finish === 'refusal' || response.finish === 'filtered') {
    return { status: 'failed', why: 'The model refused to answer.', usage };
  }
  return text === ''
    ? { status: 'failed', why: 'The model returned nothing.', usage }
    : { status: 'answered', text, isCutShort: response.finish === 'length', usage };
};

/**
 * As `consult$`, from a layer before or after the loop, with the model of the call or another one. Before the loop,
 * `charge` adds the usage. Without any model, the outcome is a failure.
 */
export const consultInCall$ = (
  context: Context,
  call: Pick<Call, 'model' | 'options'>,
  { model = call.model, ...consultation }: Consultation,
): Observable<Consulted> => {
  if (model === undefined) {
    const why = 'An agent made of steps has no model. Pass one.';
    return of({ status: 'failed', why, usage: noUsage });
  }
  const limits = limitsOf(call.options.limits);
  return consult$(
    context,
    { model: ready(model), limits },
    { iteration: context.hooks.iteration() },
    consultation,
  );
};
