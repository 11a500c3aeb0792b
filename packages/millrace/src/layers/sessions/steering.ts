import {
  AsyncSubject,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  endWith,
  finalize,
  from,
  identity,
  ignoreElements,
  map,
  merge,
  mergeMap,
  of,
  type Observable,
  takeLast,
  takeUntil,
  throwError,
  toArray,
} from 'rxjs';
import type { CallInfo, Reply } from '../../values/reply.js';
import { preparedInput$ } from '../interceptors/prepare.js';
import type { Call } from '../../seams/call.js';
import type { CallOptions } from '../../call/call-options.js';
import type { Context, Phase, Layer } from '../../seams/layer.js';
import { phase } from '../../seams/phase.js';
import { MillraceError } from '../../values/errors.js';
import { type Input, readLateInput } from '../../seams/input.js';
import { checkInterrupt } from '../../phases/limit.js';
import { interruptedBy$ } from '../interrupt-on.js';
import { isMessage, isArrayOf } from '../../values/shape.js';
import { readUse } from '../../seams/read-use.js';
import type { UserMessage } from '../../values/message.js';
import { addInput } from '../../run.js';
import type { StepForm } from '../../journal/step-forms.js';
import { cell } from '../../step.js';
import { abortWhen } from '../../call/abort-when.js';
import type { View } from '../../call/callable.js';
import { lineageOf } from '../../seams/call-scope.js';

declare module '../../events.js' {
  interface Events {
    readonly steered: {
      /** A message that was added to the running call. The next request includes it. */
      readonly message: UserMessage;
    };
  }
}

/** The outcome of steering: delivered with the request of an iteration, or not delivered. */
export type SteerOutcome =
  | { readonly status: 'delivered'; readonly iteration: number }
  | {
      readonly status: 'notDelivered';
      /** `notRunning`: no such call is running. `ended`: it ended before its next turn. `vetoed`: by `prepare`. */
      readonly why: 'notRunning' | 'ended' | 'vetoed';
    };

export interface Steering {
  steer$(input: Input): Observable<SteerOutcome>;
  waiting(): readonly Steer[];
  close(): void;
  /** The messages that an agent in its steps took. */
  readonly taken: UserMessage[];
}

export interface Steer {
  readonly messages: readonly UserMessage[];
  readonly settle: (outcome: SteerOutcome) => void;
}

export interface RunningCall extends Pick<
  Context,
  'info' | 'events$' | 'interruption' | 'demand' | 'scheduler' | 'hooks' | 'local'
> {
  readonly steering: Steering;
  readonly layers: readonly Layer[];
}

export const createSteering = (call: CallInfo): Steering => {
  const waiting = new Set<Steer>();
  let closed = false;
  return {
    taken: [],
    steer$: (input) =>
      defer(() => {
        const messages = readLateInput(input, call, 'steered');
        const outcome$ = new AsyncSubject<SteerOutcome>();
        const steer: Steer = {
          messages,
          settle: (outcome) => {
            outcome$.next(outcome);
            outcome$.complete();
          },
        };
        if (closed) steer.settle(ended);
        else waiting.add(steer);
        return outcome$.pipe(finalize(() => waiting.delete(steer)));
      }),
    waiting: () => [...waiting],
    close: () => {
      closed = true;
      waiting.forEach(({ settle }) => settle(ended));
    },
  };
};

const ended: SteerOutcome = { status: 'notDelivered', why: 'ended' };

/** The sessions of a family of calls, by call. */
export const steerings = cell('family', () => new Map<string, Steering>());

/** The agent that speaks for a call of steps takes its messages. */
export const steeringLayer: Layer = {
  name: 'steering',
  inherit: 'voice',
  single: true,
  turn: (phases) => phases.toSpliced(phases.indexOf(checkInterrupt) + 1, 0, steering),
};

type SteeringContext = Pick<Context, 'hooks' | 'info' | 'local' | 'perform'>;

const steering = (context: SteeringContext, prepared: Call): Phase => {
  const { hooks, info, local, perform } = context;
  const known = local(steerings);
  const { callId } = lineageOf(info).findLast((it) => known.has(it.callId)) ?? { callId: '' };
  const current = known.get(callId);
  if (current === undefined) return identity;
  return phase((run) => {
    const next = run.iteration + 1;
    // A replayed step takes no new messages.
    let taken: readonly Steer[] = [];
    const work$ = defer(() => {
      taken = current.waiting();
      if (taken.length === 0) return EMPTY;
      return from(taken).pipe(
        concatMap(({ messages }, index) =>
          preparedInput$(context, prepared, messages, `${next}/${index}`).pipe(defaultIfEmpty([])),
        ),
        toArray(),
      );
    });
    return perform({
      kind: 'steering',
      id: `${next}/steering`,
      input: undefined,
      run: () => work$,
      optional: true,
      form: steeredForm,
    }).pipe(
      map((all) => {
        const messages = all.flat();
        messages.forEach((message) => hooks.report(next, { type: 'steered', message }));
        current.taken.push(...messages);
        taken.forEach(({ settle }, index) =>
          settle(
            all[index]?.length === 0
              ? { status: 'notDelivered', why: 'vetoed' }
              : { status: 'delivered', iteration: next },
          ),
        );
        return messages.length > 0 ? addInput(run, messages) : run;
      }),
      defaultIfEmpty(run),
    );
  });
};

const steeredForm: StepForm<readonly (readonly UserMessage[])[]> = {
  isWritten: isArrayOf(isArrayOf(isMessage)),
};

/**
 * Adds an input to a running call and emits what its caller sees from then on. Errors with `busy` if the call ends
 * before it takes the input, and `guardRejected` if `prepare` rejects it. Unsubscribing does not affect the call. Of
 * the options, only `demand`, `signal`, `callMs` and `interruptOn(…)` in `use` apply.
 */
export const steerInto$ = <Seen>(
  input: Input,
  options: CallOptions,
  layers: readonly Layer[],
  running: RunningCall,
  view: View<Seen>,
): Observable<Seen> =>
  defer(() => {
    const { demand, steering: ownSteering } = running;
    const reply$ = replyIn$(running);
    const all = [...layers, ...readUse('The call', options.use)];
    const late = all.find((it) => fixedLayers.includes(it.name) && !running.layers.includes(it));
    if (late !== undefined) throw cannotJoin(late.name);
    const leave = options.demand === undefined ? undefined : demand.join(options.demand);
    const steered$ = ownSteering.steer$(input).pipe(mergeMap(orBusy));
    const ended$ = reply$.pipe(ignoreElements(), endWith(true));
    return merge(
      view({ events$: running.events$, reply$ }),
      merge(steered$, interruptedBy$(all, running)).pipe(takeUntil(ended$)),
    ).pipe(
      abortWhen(options, running),
      finalize(() => leave?.()),
    );
  });

/** Emits the reply of a running call at its end. */
const replyIn$ = ({ events$, info }: RunningCall): Observable<Reply> =>
  events$.pipe(
    mergeMap((event) =>
      event.type === 'postCall' && event.callId === info.callId ? of(event.reply) : EMPTY,
    ),
    takeLast(1),
  );

const orBusy = (outcome: SteerOutcome): Observable<never> => {
  if (outcome.status === 'delivered') return EMPTY;
  const isVetoed = outcome.why === 'vetoed';
  const why = isVetoed
    ? "A 'prepare' interceptor rejected the message: the running call continues without it."
    : 'The running call of the session ended before it could take the message. Send it again: the session is free now.';
  const code = isVetoed ? 'guardRejected' : 'busy';
  return throwError(() => new MillraceError(code, why, { retryable: !isVetoed }));
};

/** Layers that a call has from its start, or not at all. */
const fixedLayers: readonly string[] = ['output', 'approval'];

const cannotJoin = (name: string): MillraceError =>
  new MillraceError(
    'busy',
    `The session is busy with a call that cannot take another ${name}. Omit ${name}(…) to join it, or wait until it has ended.`,
  );
