import { type AssistantMessage, type Finish, frozen, toolCallsOf } from '../values/message.js';
import type { StopChunk } from '../models/chunk-transform.js';
import { createMessageBuilder, discard, type MessageBuilder } from './message-builder.js';
import { holding, perform } from '../seams/steps.js';
import { modelThrough } from '../seams/through.js';
import type { LoopCall } from '../seams/call.js';
import { andThen, type Eventual } from '../flow/eventual.js';
import type { Malformed, ModelRequest } from '../models/model.js';
import type { Context } from '../seams/layer.js';
import type { AfterModel, BeforeModel, Chunk, ModifiablePayload } from '../events.js';
import { streamMessage$ } from './stream-message.js';
import type { OpenRun } from '../run.js';
import { cell, type Cut } from '../step.js';
import { addUsage, noUsage, type Usage } from '../values/usage.js';
import { withOwnId, editedMessage, messageIdAt } from './own-message.js';

export type ModelAnswer =
  | {
      readonly status: 'answered';
      readonly message: AssistantMessage;
      readonly finish: Finish;
      readonly usage: Usage;
      /** The name of the model that answered: a fallback may have. */
      readonly model?: string;
      /** Whether an interceptor ends the call here. */
      readonly stop: boolean;
      /** The feedback of an interceptor that asks for another message. */
      readonly again: string | undefined;
      /** Whether observers have seen part of it. */
      readonly isShown: boolean;
      /** Set if a transform ended the message. */
      readonly halt: StopChunk | undefined;
      /** Set if the text could not be read as an action. */
      readonly malformed: Malformed | undefined;
    }
  | {
      /** Cut by an interrupt, or vetoed by an interceptor. */
      readonly status: 'interrupted' | 'vetoed';
      readonly message: AssistantMessage;
      readonly usage: Usage;
      /** The text of the reply, if a layer cut the step with a message. */
      readonly instead?: string;
    };

type Before = Extract<ModifiablePayload, BeforeModel>;
type After = Extract<ModifiablePayload, AfterModel>;

export interface RequestEvents {
  readonly before: (request: BeforeModel) => Before;
  readonly chunk: Chunk;
  readonly after: (answered: AfterModel, wish: Wish) => After;
}

/** The wish of a transform that ended the message. Interceptors may change it. */
export interface Wish {
  readonly stop?: boolean;
  readonly again?: string;
}

/** The part of a call that a request needs. */
export type Asking = Pick<LoopCall, 'limits' | 'model'>;

/** The ids of all tool calls of the conversation, which must not repeat. */
export const toolCallIds = cell('call', () => new Set<string>());

/** Asks the model for one message, in a step at `position`. */
export const askModel = (
  context: Context,
  call: Asking,
  run: Pick<OpenRun, 'iteration'>,
  events: RequestEvents,
  position: string,
  request: ModelRequest,
): Eventual<ModelAnswer> => {
  const known = context.local(toolCallIds);
  const step = modelStep(context, call, run, events, position, request);
  const answered = perform(context, { kind: 'model', id: position, input: request, ...step });
  return andThen(answered, (given) => {
    // A cache may have answered with the message of another call.
    const response = withOwnId(given, context.info, position);
    toolCallsOf(response.message).forEach(({ id }) => known.add(id));
    return response;
  });
};

export interface ModelStep {
  /** Asks the model, with interceptors before and after. */
  readonly work: (attempt: number) => Eventual<ModelAnswer>;
  readonly cut: (why: Pick<Cut, 'message'>) => ModelAnswer;
}

/** The step of a request, also of those beside the loop (`consult$`). The only place that asks a model. */
export const modelStep = (
  context: Context,
  call: Asking,
  { iteration }: Pick<OpenRun, 'iteration'>,
  events: RequestEvents,
  position: string,
  { messages, ...options }: ModelRequest,
): ModelStep => {
  const { info, hooks } = context;
  const known = context.local(toolCallIds);
  let builder: MessageBuilder | undefined;
  let earlier = noUsage;
  const beginAttempt = (attempt: number): MessageBuilder => {
    // A layer asks again: the message of its first attempt is discarded, and its usage counts.
    if (builder !== undefined) {
      discard(context, iteration, builder.message(), 'asked again');
      earlier = addUsage(earlier, builder.usage);
    }
    builder = createMessageBuilder({
      messageId: messageIdAt(`${info.callId}/${position}`, attempt),
      name: info.agent.at(-1) ?? '',
      iteration,
      isTaken: (id) => known.has(id),
    });
    return builder;
  };
  const cutShort = (
    status: 'interrupted' | 'vetoed',
    begun: MessageBuilder,
    instead?: string,
  ): ModelAnswer => ({
    status,
    ...(instead !== undefined && { instead }),
    message: begun.message(),
    usage: addUsage(earlier, begun.usage),
  });
  // Made within the step: the `model` of a layer that throws fails it.
  const askingThroughLayers = (): Asking => ({
    limits: call.limits,
    model: modelThrough(context, call.model),
  });
  return {
    // In order: the interceptors before, the stream, the interceptors after. An interrupt waits for the last ones.
    work: (attempt) => {
      const own = beginAttempt(attempt);
      let { name: model } = call.model;
      const onModel = (name: string): void => {
        model = name;
      };
      const afterStream = (finish: Finish): Eventual<ModelAnswer> =>
        holding(context, position, () =>
          hooks.emit(iteration, events.after(payloadOf(own, finish), wishOf(own)), (event) =>
            event === undefined ? cutShort('vetoed', own) : modelAnswer(event),
          ),
        );
      const modelAnswer = (event: After): ModelAnswer => ({
        status: 'answered',
        message: editedMessage(own.message(), event.message, known),
        finish: event.finish,
        usage: addUsage(earlier, own.usage),
        stop: event.type === 'postReasoning' && event.stop === true,
        again: event.type === 'postReasoning' ? event.again : undefined,
        isShown: own.isShown(),
        halt: own.halt,
        malformed: own.malformed,
        model,
      });
      return hooks.emit(iteration, events.before({ messages, options }), (event) =>
        event === undefined
          ? cutShort('vetoed', own)
          : andThen(
              streamMessage$(
                context,
                askingThroughLayers(),
                { iteration },
                events.chunk,
                event,
                own,
                onModel,
              ),
              afterStream,
            ),
      );
    },
    cut: ({ message }) => cutShort('interrupted', builder ?? beginAttempt(1), message),
  };
};

const payloadOf = (builder: MessageBuilder, finish: Finish) => ({
  message: frozen(builder.message()),
  finish,
  usage: builder.usage,
});

const wishOf = ({ halt }: MessageBuilder): Wish => {
  if (halt === undefined) return {};
  return halt.feedback === undefined ? { stop: true } : { again: halt.feedback };
};
