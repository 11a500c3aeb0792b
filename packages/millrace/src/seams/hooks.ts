import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import { defaultIfEmpty, EMPTY, filter, identity, map } from 'rxjs';
import { areBlocks, areContentBlocks, freezeResult, frozen } from '../values/message.js';
import type { CallInfo } from '../values/reply.js';
import { andThen, deferWork, type Eventual, hasLeft, toObservable } from '../flow/eventual.js';
import type { MessageChunk } from '../models/chunk-transform.js';
import { type MillraceError, toMillraceError } from '../values/errors.js';
import type {
  AgentEvent,
  Chunk,
  ChunkOf,
  Envelope,
  EventType,
  Listener,
  ModifiableEvent,
  ModifiablePayload,
  ReportedPayload,
  ModifiableType,
} from '../events.js';
import { withError } from '../events.js';
import { type EventHook, type Hook, ordered } from './interceptor.js';
import { createStage, passThrough, type Stage } from '../flow/stage.js';
import type { Trampoline } from '../flow/trampoline.js';
import { cell } from '../step.js';
import { isRecord } from '../values/json.js';

type AnyPayload = ModifiablePayload | ReportedPayload;
type Reserved = Partial<Record<'type' | 'iteration' | 'seq' | 'at', unknown>>;
type PayloadOf<Type> = Extract<ModifiablePayload, { readonly type: Type }>;

type Emit = <Payload extends ModifiablePayload, T>(
  iteration: number,
  payload: Payload,
  next: (event: PayloadOf<Payload['type']> | undefined) => Eventual<T>,
) => Eventual<T>;

/** Emits the events of a call, and runs them through interceptors. */
export interface Hooks {
  /** Runs an event through its interceptors, delivers it, and continues with the result, or `undefined` after a veto. */
  readonly emit: Emit;
  intercepts(type: EventType): boolean;
  /** The interceptors of an event, by priority: each emits the event, edited or not, or `undefined` for a veto. */
  each<Type extends ModifiableType>(type: Type): readonly EachHook<Type>[];
  /** As `emit`, but leaves the delivery to the caller. */
  readonly intercept: Emit;
  /** Runs the chunks of one message through the transforms. */
  transformed(iteration: number): MonoTypeOperatorFunction<MessageChunk>;
  /** Delivers an event without interceptors; that of a delta in two parts. */
  report(iteration: number, payload: AnyPayload | Chunk, delta?: ChunkOf): void;
  /** The interceptors of the call, and of the parents that it speaks for. */
  readonly speakerInterceptors: readonly Hook[];
  iteration(): number;
  /** Adds an attendant, before the first event. */
  attend(attendant: Attendant): void;
  /** Whether the last event of the call has been delivered: nothing follows it, not even from within its delivery. */
  hasDeliveredLast(): boolean;
}

/** One interceptor of an event. */
export interface EachHook<Type extends ModifiableType> {
  readonly name: string;
  readonly ask$: (
    iteration: number,
    payload: PayloadOf<Type>,
  ) => Observable<PayloadOf<Type> | undefined>;
}

/** Takes part in the delivery of events. */
export interface Attendant {
  /** Receives each event immediately, even while another one is delivered, so events are recorded in causal order. */
  readonly listener?: Listener;
  /** Delivers an event by calling `now()`: immediately, later or never. `isEnd` marks the last event of the call. */
  readonly deliver?: (type: EventType, isEnd: boolean, now: () => void) => void;
}

/** The `seq` of the last event of a family of calls. */
export const numbering = cell('family', () => ({ last: 0 }));

export interface HooksInit {
  readonly call: CallInfo;
  readonly interceptors: readonly Hook[];
  /** The interceptors of the call, and of the parents that it speaks for. Default: `interceptors`. */
  readonly speakerInterceptors?: readonly Hook[];
  readonly scheduler: SchedulerLike;
  /** Delivers the events of the family of calls, one at a time. */
  readonly deliver: Trampoline;
  readonly listeners: readonly Listener[];
  readonly nextSeq: () => number;
}

export const createHooks = ({
  call,
  interceptors,
  speakerInterceptors = interceptors,
  scheduler,
  deliver,
  listeners,
  nextSeq,
}: HooksInit): Hooks => {
  const { rootId, callId, agent, metadata: _m, parent: _p, parentStep: _s, ...labels } = call;
  // A label never replaces what an event has.
  const { type: _t, iteration: _i, seq: _q, at: _a, ...kin }: typeof labels & Reserved = labels;
  let latest = 0;
  let settled = false;
  let deliverBy: Attendant['deliver'];
  /** A literal of fields that every event has: a spread in its middle would take longer than the rest, and so would fields that are added one by one. */
  const envelope = <Type extends EventType>(type: Type, iteration: number, seq: number) =>
    Object.assign({ type, rootId, callId, agent, iteration, seq, at: scheduler.now() }, kin);
  const deliverEvent = (
    iteration: number,
    own: AnyPayload | Chunk,
    delta?: ChunkOf,
    edited?: ModifiablePayload,
  ): void => {
    if (settled) return;
    const type = edited?.type ?? own.type;
    settled = type === 'postCall' || type === 'error';
    latest = iteration;
    if (deliverBy === undefined) deliverNow(iteration, own, delta, edited);
    else deliverBy(type, settled, () => deliverNow(iteration, own, delta, edited));
  };
  /** An event without observers is counted, but not created. */
  const deliverNow: typeof deliverEvent = (iteration, own, delta, edited) => {
    const seq = nextSeq();
    if (first.length === 0 && !everyone.some(hears)) return;
    const around: Envelope = envelope(edited?.type ?? own.type, iteration, seq);
    const made =
      edited === undefined ? Object.assign(around, own, delta) : { ...edited, ...around };
    const event = Object.freeze(withErrorOf(own, made));
    if (first.length === 0) deliver(() => sendTo(everyone, event));
    else recordAndSend(event);
  };
  const recordAndSend = (event: AgentEvent): void => {
    let isRecorded = false;
    const record = (): void => {
      if (isRecorded) return;
      isRecorded = true;
      sendTo(first, event);
    };
    // In its place in the queue before it is recorded: a store may interrupt the call, whose events then follow this one.
    deliver(() => {
      record();
      sendTo(everyone, event);
    });
    record();
  };
  const sendTo = (to: readonly Listener[], event: AgentEvent): void => {
    for (const listener of to) listener.next(event, reportOf);
  };
  /** Nothing follows the last event in the stream of a call, so a problem with it is only shared. */
  const reportOf = (payload: ReportedPayload): void => {
    if (!settled) {
      report(latest, payload);
      return;
    }
    const event = Object.freeze(Object.assign(envelope(payload.type, latest, nextSeq()), payload));
    deliver(() => sendTo(listeners.filter(isShared), event));
  };
  const report: Hooks['report'] = deliverEvent;
  const deliverModified = (iteration: number, own: ModifiablePayload, event: ModifiablePayload) =>
    deliverEvent(iteration, own, undefined, event === own ? undefined : event);
  const everyone = [
    ...watchersOf(interceptors, call, (payload) => report(latest, payload)),
    ...listeners,
  ];
  const first: Listener[] = [];
  const stages = ordered(interceptors, 'event').map((interceptor) => ({
    type: interceptor.type,
    name: interceptor.name,
    stage: stageOf(interceptor, call, report),
  }));
  const transforms = ordered(speakerInterceptors, 'chunks');

  const eventOf = (iteration: number, own: ModifiablePayload): ModifiableEvent =>
    freezeEvent(withErrorOf(own, Object.assign(envelope(own.type, iteration, 0), own)));
  const intercept = <Payload extends ModifiablePayload, T>(
    iteration: number,
    payload: Payload,
    next: (event: PayloadOf<Payload['type']> | undefined) => Eventual<T>,
  ): Eventual<T> => {
    const own: ModifiablePayload = payload;
    const isOwn = isPayloadOf<Payload['type']>(own.type);
    const ofType = stages.filter(({ type }) => type === own.type);
    // Frozen before interceptors run: an edit in place would change later requests.
    if (ofType.length === 0 && isOwn(own)) return next(freezeEvent(own));
    const passed = passThrough<ModifiableEvent>(
      eventOf(iteration, own),
      ofType.map(({ stage }) => stage),
    );
    return andThen(
      toObservable(passed).pipe(filter(isOwn), map(freezeEvent), defaultIfEmpty(undefined)),
      next,
    );
  };
  const each: Hooks['each'] = <Type extends ModifiableType>(type: Type) =>
    stages
      .filter((it) => it.type === type)
      .map(({ name, stage }): EachHook<Type> => ({
        name,
        ask$: (iteration, payload) =>
          deferWork(() => stage(eventOf(iteration, payload))).pipe(
            filter(isPayloadOf(type)),
            map(freezeEvent),
            defaultIfEmpty(undefined),
          ),
      }));
  return {
    report,
    speakerInterceptors,
    intercept,
    emit: (iteration, payload, next) =>
      intercept(iteration, payload, (event) => {
        if (event !== undefined) deliverModified(iteration, payload, event);
        return hasLeft() ? EMPTY : next(event);
      }),
    each,
    intercepts: (type) => stages.some((stage) => stage.type === type),
    iteration: () => latest,
    attend: ({ listener, deliver: by }) => {
      const outer = deliverBy;
      if (listener) first.push(listener);
      if (by)
        deliverBy = outer
          ? (type, isEnd, now) => outer(type, isEnd, () => by(type, isEnd, now))
          : by;
    },
    hasDeliveredLast: () => settled,
    transformed: (iteration) =>
      transforms.reduce<MonoTypeOperatorFunction<MessageChunk>>((before, { name, transform }) => {
        const onPassedOver = (error: MillraceError): void =>
          report(iteration, { type: 'handlerError', of: 'transformChunks', name, error });
        const through = transform({ name, onPassedOver });
        return (chunk$) => through(before(chunk$));
      }, identity),
  };
};

const hears = (listener: Listener): boolean => listener.hears();

const isShared = (listener: Listener): boolean => listener.isShared === true;

const withErrorOf = <Event extends object>(payload: AnyPayload | Chunk, event: Event): Event =>
  payload.type === 'postActing' ? withError(event, payload.error) : event;

/** Every stage checks the type; this informs the compiler. */
const isPayloadOf =
  <Type extends ModifiableType>(type: Type) =>
  (out: ModifiablePayload): out is PayloadOf<Type> =>
    out.type === type;

const stageOf = (
  { type, failOpen, name, open }: EventHook & { readonly name: string },
  call: CallInfo,
  report: Hooks['report'],
): Stage<ModifiableEvent> => {
  let operate: ReturnType<EventHook['open']> | undefined;
  return createStage({
    name,
    what: `'${type}' event`,
    failOpen,
    operate$: (event) => (operate ??= open(call))(event),
    isUsable: (value) => isUsable(type, value),
    onVeto: (event) => {
      // A veto of what only subscribers see is not reported.
      if (event.type.endsWith('Chunk') || event.type === 'preCall') return;
      const about = 'toolCall' in event ? { toolCallId: event.toolCall.id } : {};
      report(event.iteration, { type: 'vetoed', of: type, name, ...about });
    },
    onPassedOver: ({ iteration }, error) =>
      report(iteration, { type: 'handlerError', of: type, name, error }),
  });
};

/** A handler's error must not affect other observers. */
const watchersOf = (
  interceptors: readonly Hook[],
  call: CallInfo,
  report: (payload: ReportedPayload) => void,
): readonly Listener[] =>
  ordered(interceptors, 'watch').map(({ name, handle }) => ({
    hears: () => true,
    next: (event) => {
      const fail = (cause: unknown): void => {
        // A handler that fails on `handlerError` would loop forever.
        if (event.type === 'handlerError') return;
        const error = toMillraceError(cause, 'unknown', `The handler ${name} failed`);
        report({ type: 'handlerError', of: event.type, name, error });
      };
      try {
        const returned = handle(event, call);
        if (returned instanceof Promise) returned.catch(fail);
      } catch (cause) {
        fail(cause);
      }
    },
  }));

/** Freezes an event deeply: an interceptor may have frozen it shallowly. A tool's `details` belong to the tool. */
const freezeEvent = <Event extends ModifiablePayload>(event: Event): Event => {
  if (event.type === 'postActing') freezeResult(event.result);
  // Progress values belong to the tool.
  const fields = event.type === 'actingChunk' ? [event.toolCall] : Object.values(event);
  for (const field of fields) {
    if (typeof field === 'object') frozen(field);
  }
  return Object.freeze(event);
};

const isUsable = (type: ModifiableType, value: unknown): value is ModifiableEvent =>
  isOfType(type, value) && isWhole(value);

const isOfType = (type: ModifiableType, value: unknown): value is ModifiableEvent =>
  isRecord(value) && value['type'] === type;

const isWhole = (event: ModifiableEvent): boolean => {
  if ('delta' in event) return typeof event.delta === 'string';
  switch (event.type) {
    case 'preCall':
      return Array.isArray(event.input);
    case 'preReasoning':
    case 'preSummary':
    case 'prePlanning':
      return Array.isArray(event.messages) && isRecord(event.options);
    case 'postReasoning':
    case 'postSummary':
    case 'postPlanning':
      return areBlocks(event.message.content);
    case 'preActing':
    case 'actingChunk':
      return typeof event.toolCall.name === 'string' && isRecord(event.toolCall.input);
    case 'postActing':
      return areContentBlocks(event.result.content);
    case 'postCall':
      return areBlocks(event.reply.content);
  }
};
