import { freeze } from 'immer';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  filter,
  map,
  type Observable,
  of,
  type SchedulerLike,
  take,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { CallInfo } from './call-info.js';
import { isMillraceError, messageOf, MillraceError } from './errors.js';
import {
  type AgentEvent,
  type EventOf,
  isEvent,
  type ModifiableEvent,
  type ModifiablePayload,
  type ModifiableType,
  modifiableTypes,
  type ReportedPayload,
} from './events.js';
import { freezeResult } from './freeze-message.js';
import type { Interceptor } from './interceptor.js';
import { isRecord } from './json.js';
import { areBlocks, areContentBlocks } from './message.js';

/** The one way by which a call tells what happens, and lets it be changed. */
export interface Hooks {
  /** Sends an event through its interceptors, delivers it, and emits what came out; a veto emits nothing. */
  emit$<Payload extends ModifiablePayload>(
    iteration: number,
    payload: Payload,
  ): Observable<EventOf<Payload['type']>>;
  /** As `emit$`, but leaves the delivery to the caller. */
  intercepted$<Payload extends ModifiablePayload>(
    iteration: number,
    payload: Payload,
  ): Observable<EventOf<Payload['type']>>;
  /** Delivers an event as it is. */
  report(iteration: number, payload: ReportedPayload | ModifiablePayload): void;
  /** The iteration of the last event. */
  iteration(): number;
  /** Whether the last event of the call has been delivered: nothing follows it, not even from within its delivery. */
  isSettled(): boolean;
}

/** What the hooks of a call are made of. */
export interface HooksInit {
  readonly call: CallInfo;
  readonly interceptors: readonly Interceptor[];
  readonly scheduler: SchedulerLike;
  /** Hands a finished event to all who listen. */
  readonly deliver: (event: AgentEvent) => void;
  readonly nextSeq: () => number;
}

/** Makes the hooks of one call. */
export const createHooks = ({
  call,
  interceptors,
  scheduler,
  deliver,
  nextSeq,
}: HooksInit): Hooks => {
  const origin = originOf(call);
  let latest = 0;
  let settled = false;
  const report: Hooks['report'] = (iteration, payload) => {
    if (settled) return;
    settled = payload.type === 'postCall' || payload.type === 'error';
    latest = iteration;
    deliver(
      Object.freeze({ ...payload, ...origin, iteration, seq: nextSeq(), at: scheduler.now() }),
    );
  };
  const stages = interceptors
    .map((interceptor, index) => ({ interceptor, index }))
    .sort((a, b) => a.interceptor.priority - b.interceptor.priority)
    .map(({ interceptor, index }) => toStage(interceptor, index, call, report));

  const through$ = (iteration: number, payload: ModifiablePayload): Observable<ModifiableEvent> => {
    const event = { ...payload, ...origin, iteration, seq: 0, at: scheduler.now() };
    return stages
      .filter(({ type }) => type === payload.type)
      .reduce<Observable<ModifiableEvent>>(
        (event$, { apply$ }) => event$.pipe(concatMap(apply$)),
        of(event),
      );
  };
  const intercepted$ = <Payload extends ModifiablePayload>(iteration: number, payload: Payload) =>
    through$(iteration, payload).pipe(
      // Every stage has made sure of the type; this tells the compiler.
      filter((out): out is EventOf<Payload['type']> => isEvent(out, payload.type)),
      map(freezeEvent),
    );
  return {
    report,
    intercepted$,
    iteration: () => latest,
    isSettled: () => settled,
    emit$: (iteration, payload) =>
      intercepted$(iteration, payload).pipe(tap((event) => report(iteration, event))),
  };
};

/** An interceptor that has been readied for one call. */
interface Stage {
  readonly type: ModifiableType;
  readonly apply$: (event: ModifiableEvent) => Observable<ModifiableEvent>;
}

const toStage = (
  interceptor: Interceptor,
  index: number,
  call: CallInfo,
  report: Hooks['report'],
): Stage => {
  const { type, failOpen, name = `on('${type}') at place ${index + 1}` } = interceptor;
  let operate: ReturnType<Interceptor['open']> | undefined;

  const passOver = (event: ModifiableEvent, error: MillraceError): Observable<ModifiableEvent> => {
    if (!failOpen) return throwError(() => error);
    report(event.iteration, { type: 'handlerError', of: type, name, error });
    return of(event);
  };
  const verdict = (
    event: ModifiableEvent,
    out: readonly unknown[],
  ): Observable<ModifiableEvent> => {
    if (out.length > 0) return of(onlyOne(type, name, out));
    report(event.iteration, { type: 'vetoed', of: type, name });
    return EMPTY;
  };
  return {
    type,
    apply$: (event) =>
      defer(() => (operate ??= interceptor.open(call))(event)).pipe(
        take(2),
        toArray(),
        concatMap((out) => verdict(event, out)),
        catchError((cause: unknown) => passOver(event, interceptorError(name, cause))),
      ),
  };
};

const onlyOne = (type: ModifiableType, name: string, out: readonly unknown[]): ModifiableEvent => {
  const [only] = out;
  if (out.length > 1) throw interceptorError(name, `it made more than one event of one`);
  if (!isModifiable(only) || only.type !== type || !isUsable(only)) {
    throw interceptorError(name, `it made something else of a '${type}' event`);
  }
  return only;
};

const isModifiable = (value: unknown): value is ModifiableEvent =>
  isRecord(value) && modifiableTypes.some((type) => type === value['type']);

/** Whether an edit has left the event what the loop can go on with. */
const isUsable = (event: ModifiableEvent): boolean => {
  switch (event.type) {
    case 'preReasoning':
    case 'preSummary':
      return Array.isArray(event.messages) && isRecord(event.options);
    case 'postReasoning':
    case 'postSummary':
      return areBlocks(event.message.content);
    case 'preActing':
      return typeof event.toolUse.name === 'string' && isRecord(event.toolUse.input);
    case 'postActing':
      return areContentBlocks(event.result.content);
    case 'postCall':
      return areBlocks(event.reply.content);
  }
};

const interceptorError = (name: string, cause: unknown): MillraceError =>
  isMillraceError(cause) && cause.code === 'interceptor'
    ? cause
    : new MillraceError(
        'interceptor',
        `The interceptor ${name} failed: ${messageOf(cause)}. It must make one event of the same type of each that it gets, or none to veto it.`,
        { cause },
      );

/** An event that was frozen by an interceptor may be so at its surface only. A tool's `details` are its own. */
const freezeEvent = <Event extends ModifiableEvent>(event: Event): Event => {
  if (event.type === 'postActing') freezeResult(event.result);
  Object.values(event).forEach((field: unknown) => {
    freeze(field, true);
  });
  return Object.freeze(event);
};

const originOf = ({ rootId, callId, parentId, sessionId, agent }: CallInfo) => ({
  rootId,
  callId,
  agent,
  ...(parentId === undefined ? {} : { parentId }),
  ...(sessionId === undefined ? {} : { sessionId }),
});
