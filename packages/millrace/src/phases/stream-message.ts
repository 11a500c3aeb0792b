import { concat, concatMap, defer, EMPTY, find, mergeMap, type Observable, of } from 'rxjs';
import { contained, failing } from '../flow/contained.js';
import { deferWork } from '../flow/eventual.js';
import { dropWarning, supportedOptions } from '../models/request-options.js';
import type { MessageChunk } from '../models/chunk-transform.js';
import type { Demand } from '../flow/demand.js';
import type { LoopCall } from '../seams/call.js';
import type { Context } from '../seams/layer.js';
import { discard, type MessageBuilder } from './message-builder.js';
import { MillraceError, revised, toMillraceError } from '../values/errors.js';
import { defined, fnv1a } from '../values/json.js';
import type { BeforeModel, Chunk, ChunkOf } from '../events.js';
import { type Finish, textOf } from '../values/message.js';
import type { ModelContext } from '../models/model.js';
import type { OpenRun } from '../run.js';
import { toModel } from '../models/prompt.js';
import { createRetryBudget } from '../models/timeouts.js';
import { cell } from '../step.js';
import { tokensIn } from '../values/usage.js';

type Needs = Pick<Context, 'hooks' | 'info' | 'local' | 'scheduler'> & {
  readonly demand: Demand;
};
type Asked = Pick<LoopCall, 'limits' | 'model'>;

/** The retries that are left to a family of calls. */
export const retries = cell('family', () => ({ budget: createRetryBudget(10) }));

/** Maximum number of responses for one message that its provider pauses. */
const maxResponses = 16;

/** Feeds the builder until the message is complete, and emits its finish. */
export const streamMessage$ = (
  context: Needs,
  call: Asked,
  { iteration }: Pick<OpenRun, 'iteration'>,
  chunk: Chunk | undefined,
  asked: BeforeModel,
  builder: MessageBuilder,
  /** Called with the model that answers, if it is not the requested one. */
  answering: (model: string) => void = () => undefined,
): Observable<Finish> => {
  const { hooks } = context;
  const { model } = call;
  const { options, dropped } = supportedOptions(model, asked.options);
  const modelContext = modelContextOf(context, call, iteration, builder.messageId, answering);
  const isIntercepted = chunk !== undefined && hooks.intercepts(chunk.type);
  let shown: readonly Observable<unknown>[] = [];
  const show = (delta: ChunkOf): void => {
    if (chunk === undefined) return;
    if (chunk.type === 'reasoningChunk' || !isIntercepted) hooks.report(iteration, chunk, delta);
    else {
      const event = { ...chunk, ...delta };
      shown = [...shown, deferWork(() => hooks.emit(iteration, event, () => EMPTY))];
    }
  };
  /** Returns whether the message ends here. */
  const take = (part: MessageChunk): boolean => {
    const { halt } = builder;
    if (part.type === 'restart') discard(context, iteration, builder.message(), part.why);
    const delta = builder.add(part);
    if (delta !== undefined) show(delta);
    // Earlier responses of a paused message are part of the new one.
    if (part.type === 'restart') builder.deltas().forEach(show);
    return builder.halt !== halt;
  };
  const takeInTurn$ = (part: MessageChunk): Observable<unknown> => {
    shown = [];
    const isEnd = take(part);
    return concat(...shown, of(isEnd));
  };
  const fail = (cause: unknown): MillraceError =>
    withUsage(
      withPartial(toMillraceError(cause, 'unknown', `The model '${model.name}' failed`), builder),
      builder,
    );
  /** Adds a response to the builder. A paused message continues in the next response. */
  const finished$ = (nth: number): Observable<Finish> =>
    defer(() => {
      const begun = builder.message();
      const before = toModel(asked.messages);
      const messages = begun.content.length > 0 ? [...before, begun] : before;
      return model.stream$({ ...options, messages }, modelContext);
    }).pipe(
      contained(),
      hooks.transformed(iteration),
      (part$): Observable<unknown> =>
        isIntercepted ? part$.pipe(concatMap(takeInTurn$), find(Boolean)) : part$.pipe(find(take)),
      mergeMap(() => {
        if (builder.finish !== 'pause' || nth === maxResponses)
          return of(finishOf(builder, model.name));
        builder.resume();
        return finished$(nth + 1);
      }),
    );
  dropped.forEach((option) => hooks.report(iteration, dropWarning(model, option)));
  return finished$(1).pipe(failing(fail));
};

const isWhole = (
  builder: MessageBuilder,
): builder is MessageBuilder & { readonly finish: Finish } =>
  builder.finish !== undefined && builder.finish !== 'pause';

const modelContextOf = (
  { info, hooks, demand, scheduler, local }: Needs,
  { limits }: Asked,
  iteration: number,
  stepId: string,
  answering: (model: string) => void,
): ModelContext => {
  const { firstChunkMs, chunkMs, busyMs } = limits.timeouts;
  return {
    demand,
    scheduler,
    callId: info.callId,
    stepId,
    random: randomOf(stepId),
    report: (event) => {
      if (event.type === 'modelFallback') answering(event.to);
      hooks.report(iteration, event);
    },
    timeouts: defined({ firstChunkMs, chunkMs, busyMs }),
    retryBudget: local(retries).budget,
  };
};

const finishOf = (builder: MessageBuilder, model: string): Finish => {
  if (isWhole(builder)) return builder.finish;
  throw new MillraceError(
    'invalidResponse',
    builder.finish === 'pause'
      ? `The model '${model}' paused ${maxResponses} times without finishing its message.`
      : `The answer of the model '${model}' is incomplete: its stream ended without a finish reason.`,
    { partial: textOf(builder.message()) },
  );
};

const withUsage = (error: MillraceError, { usage }: MessageBuilder): MillraceError =>
  tokensIn(usage) > 0 ? revised(error, { usage }) : error;

const withPartial = (error: MillraceError, builder: MessageBuilder): MillraceError => {
  const partial = textOf(builder.message());
  return error.partial === undefined && partial !== '' ? revised(error, { partial }) : error;
};

type Random = () => number;

/** Random numbers of a step, the same on replay: mulberry32, seeded with the FNV-1a hash of the step id. */
export const randomOf = (stepId: string): Random => {
  let state: number | undefined;
  return () => {
    state = ((state ?? fnv1a(stepId)) + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
};
