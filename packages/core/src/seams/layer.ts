import {
  BehaviorSubject,
  concat,
  concatMap,
  defer,
  EMPTY,
  filter,
  finalize,
  first,
  map,
  NEVER,
  noop,
  type Observable,
  of,
  race,
  type SchedulerLike,
  take,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import type { Call } from './call.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import { contained, failing, thenMap } from '../flow/contained.js';
import type { JoinableDemand } from '../flow/demand.js';
import { MillraceError, misuse, toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import type { Hooks } from './hooks.js';
import type { Holds, Interruption } from '../flow/interruption.js';
import { type Hook, type Interceptor, isInterceptor } from './interceptor.js';
import { isRecord } from '../values/json.js';
import type { Model, RetryBudget } from '../models/model.js';
import type { Rule } from '../values/options.js';
import { checkOptions, isFunction, isNumber, isText, oneOf } from '../values/options.js';
import type { PhaseFactory } from './phase.js';
import type { InputSchema } from '../values/schema.js';
import type { Locals, Perform, Step } from '../step.js';
import type { ContextEntry, ContextValues } from '../tools/context-key.js';

/** What the layers of one call share. It is made once and never changes; a layer asks for the part it uses. */
export interface LayerContext {
  readonly call: CallInfo;
  /** Reports events of the call, and sends them through its interceptors. */
  readonly hooks: Hooks;
  /** What happens in the call, and in those below it, from now on. Hot; ends with the call. */
  readonly events$: Observable<AgentEvent>;
  /** How the call ends: emits its reply after the last event, or errors. */
  readonly reply$: Observable<Reply>;
  readonly scheduler: SchedulerLike;
  readonly demand: JoinableDemand;
  /** Returns the value of a cell, created the first time it is asked for. */
  readonly local: Locals;
  /** Performs a step of the call, through all its layers: the only way to ask the outside world. Errors with `invalidState` if the call has had a step of this `id`. */
  readonly perform: Perform;
  /** Wraps a model, whichever is asked for the call, in the layers of the call. Not for use within the `model` of a layer. */
  readonly throughLayers: (model: Model) => Model;
  readonly interruption: Interruption;
  /** Whether an interrupt can come. A call that nobody can interrupt needs nothing that waits for it. */
  readonly isInterruptible: boolean;
  /** What must end before a step is cut. */
  readonly holds: Holds;
  /** How often a family of calls may send requests again. It only shrinks. */
  readonly retryBudget: RetryBudget;
  /** What tools find under context keys. */
  readonly values: ContextValues;
  /** The calls above this one, the outermost first, and itself. */
  readonly lineage: readonly CallInfo[];
  /** Those of its layers and of the calls above. */
  readonly labels: CallLabels;
  /** Does something once the last event of the call has been heard, or the call was left. */
  readonly whenOver: (work: () => void) => void;
  /** What the caller said, without the defaults of the agent. */
  readonly given: Readonly<Record<string, unknown>>;
  /** Lets the events of the call and of those around it count on from a number. */
  readonly countFrom: (seq: number) => void;
}

/** Answers one call, from its input to its reply. Cold; emits one reply and completes. */
export type Answer = (call: Call) => Observable<Reply>;

/** An ability that is added to an agent or a call through `use`. Each part is made once per call. The loop knows none of them, so an agent without a layer neither bundles nor runs it. */
export interface Layer {
  /** Named in errors, and what `single` goes by. */
  readonly name: string;
  /** Lower is further out. Default: 100. */
  readonly priority?: number;
  /** Also applies to sub-agents; with `voice`, only to those that speak for this agent. */
  readonly inherit?: true | 'voice';
  /** What calls with this layer are known by, in events too. */
  readonly info?: {
    readonly labels?: CallLabels;
    /** What tools find under context keys. It overrides what the agent gives. */
    readonly context?: readonly ContextEntry[];
    /** The call began before, and is resumed. */
    readonly resumed?: true;
  };
  /** Replaces an earlier layer of its name. An inherited one replaces the sub-agent's own. */
  readonly single?: true;
  /** Wraps the whole call, from before its first event until after its last, outside of every `call`. Errors before it has subscribed to the call keep all layers from starting, and fail the call. */
  readonly open?: (context: LayerContext) => <T>(call$: Observable<T>) => Observable<T>;
  /**
   * Wraps the call: passes it on with `next(call)`, as it is or edited, at most once; answers it without the loop, as with `answerWith`; or errors, which
   * fails the call. It emits one reply, which is passed on when the layer completes. An interrupt does not wait for a layer that has not passed the call on yet: the
   * call is passed on as it was. A layer that waits in a step of its context is not passed over: the interrupt cuts the step, and the layer decides.
   */
  readonly call?: (context: LayerContext) => (next: Answer) => Answer;
  /** Wraps every step. Pass it on with `next(step)`, end it with `step.cut(why)`, or error, which fails the call. Completing empty is a cut too: `step.cut({ reason: 'interrupted' })` takes its place, so that layers further out see one value. */
  readonly step?: (context: LayerContext) => (next: Perform) => Perform;
  /** Wraps every model that the call asks, whichever it is. What it throws fails the call. */
  readonly model?: (context: LayerContext) => (next: Model) => Model;
  /** Edits the phases of a turn. Of equal priority, earlier layers edit first. A list without functions is a `config` error of `createAgent`. */
  readonly turn?: (phases: readonly PhaseFactory[]) => readonly PhaseFactory[];
  /** Intercepts and watches events. An interceptor is such a layer by itself: within another one it is inherited with it. */
  readonly on?: readonly Interceptor[];
}

/** A layer that says what an answer must be: `reply.output` is of its schema. */
export interface OutputLayer<
  out Output extends InputSchema | undefined = InputSchema | undefined,
> extends Layer {
  /** Of an object. */
  readonly schema: Output;
}

/** What `use` takes: layers, interceptors among them, and lists of layers that belong together. */
export type Use<Output extends InputSchema | undefined = InputSchema | undefined> =
  // The empty list has a literal list keep the types of its items.
  | readonly (
      Layer | OutputLayer<Output> | readonly (Layer | OutputLayer<Output>)[] | readonly []
    )[]
  | readonly [];

/** The layers of a call, outermost first: its own and those that calls above it hand down, each once. */
export const layersOf = (own: readonly Layer[], inherited: readonly Layer[]): readonly Layer[] => {
  const all = new Set([...inherited, ...replaced(own)]);
  const above = new Set(inherited);
  const isReplaced = ({ name, single }: Layer): boolean =>
    single === true && inherited.some((layer) => layer.single === true && layer.name === name);
  return [...all]
    .filter((layer) => above.has(layer) || !isReplaced(layer))
    .sort((a, b) => priorityOf(a) - priorityOf(b));
};

const replaced = (layers: readonly Layer[]): readonly Layer[] =>
  layers.filter(
    ({ name, single }, index) =>
      single !== true ||
      !layers.slice(index + 1).some((later) => later.single === true && later.name === name),
  );

export const handedDown = (layers: readonly Layer[], speaks: boolean): readonly Layer[] =>
  layers.filter(({ inherit }) => inherit === true || (inherit === 'voice' && speaks));

export const answerThrough = (
  layers: readonly Layer[],
  context: LayerContext,
  innermost: Answer,
): Answer =>
  layers.reduceRight<Answer>((next, layer) => {
    if (layer.call === undefined) return next;
    return trustedOnes.has(layer) ? layer.call(context)(next) : oneReply(layer, context, next);
  }, innermost);

const trustedOnes = new WeakSet<Layer>();

/** Marks a layer of this package: it passes a call on once, emits one reply, and one value for a step. Nothing checks that, and no interrupt passes over it. */
export const trusted = <Own extends Layer>(layer: Own): Own => {
  trustedOnes.add(layer);
  return layer;
};

/** Whether a layer may interrupt its call: any may that is not of this package nor an interceptor, and one that resumes. */
export const mayInterrupt = (layer: Layer): boolean =>
  layer.info?.resumed === true || !(trustedOnes.has(layer) || isInterceptor(layer));

export const hooksOf = (layers: readonly Layer[]): readonly Hook[] =>
  layers.flatMap((layer) => [
    ...(isInterceptor(layer) ? [layer.hook] : []),
    ...(layer.on ?? []).map(({ hook }) => hook),
  ]);

export const openThrough = <T>(
  layers: readonly Layer[],
  context: LayerContext,
  call$: Observable<T>,
): Observable<T> =>
  layers.reduceRight(
    (next$, { name, open }) =>
      open === undefined ? next$ : made(name, () => open(context))(next$),
    call$,
  );

/** Holds a layer to passing a call on once and to one reply. An interrupt passes over it until it has passed the call on or failed, unless it waits in a step, which is cut. */
const oneReply = ({ name, call: around }: Layer, context: LayerContext, next: Answer): Answer => {
  const answer$: Answer = (call) =>
    defer(() => {
      const steps$ = new BehaviorSubject(0);
      const perform: Perform = (step) =>
        defer(() => {
          steps$.next(steps$.value + 1);
          return context.perform(step).pipe(finalize(() => steps$.next(steps$.value - 1)));
        });
      let hasPassed = false;
      let failure: unknown;
      const passed$: Answer = (edited) =>
        defer(() => {
          if (hasPassed) throw odd(name, 'passed the call on twice', failure);
          if (!isCall(edited)) throw odd(name, 'passed on something that is no call');
          hasPassed = true;
          return next(edited).pipe(tap({ error: (cause: unknown) => (failure = cause) }));
        });
      const own$ = defer(() => around?.({ ...context, perform })(passed$)(call) ?? next(call)).pipe(
        tap({ error: () => (hasPassed = true) }),
      );
      const replied$ = oneOf$<Reply>(
        () => own$.pipe(contained()),
        () => odd(name, 'answered with two replies'),
        () => throwError(() => odd(name, 'answered with no reply')),
      ).pipe(
        map((reply) => {
          if (isReply(reply)) return of(ownReply(reply, context.call));
          throw odd(name, 'answered with something that is no reply');
        }),
        failing((cause) =>
          cause === failure ? cause : toMillraceError(cause, 'unknown', `In the layer '${name}'`),
        ),
      );
      const passedOver$ = context.interruption.asked$.pipe(
        concatMap(() => steps$.pipe(first((count) => count === 0))),
        filter(() => !hasPassed),
        map(() => next(call)),
      );
      // NEVER: if nothing is passed over, the race goes on.
      return race(replied$, concat(passedOver$, NEVER)).pipe(
        take(1),
        concatMap((reply$) => reply$),
      );
    });
  return answer$;
};

/** A reply that was kept from another call is a message of this one: memory would take it for the one that it has. */
const ownReply = (reply: Reply, { callId }: CallInfo): Reply =>
  reply.id.startsWith(`${callId}/`) ? reply : { ...reply, id: `${callId}/answer` };

const isCall = (value: unknown): boolean =>
  isRecord(value) && Array.isArray(value['input']) && Array.isArray(value['history']);

const isReply = (value: unknown): value is Reply =>
  isRecord(value) && typeof value['reason'] === 'string' && Array.isArray(value['content']);

const odd = (name: string, what: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' has ${what}. Pass a call on at most once, and emit one reply: that of 'next', or one of answerWith().`,
    { cause },
  );

const made = <T>(name: string, make: () => T): T => {
  try {
    return make();
  } catch (cause) {
    throw toMillraceError(cause, 'unknown', `In the layer '${name}'`);
  }
};

export const performThrough = (layers: readonly Layer[], context: LayerContext): Perform => {
  const wraps = layers.flatMap((layer) => {
    const { name, step } = layer;
    if (step === undefined) return [];
    return [{ name, wrap: made(name, () => step(context)), isTrusted: trustedOnes.has(layer) }];
  });
  if (wraps.length === 0) return runs;
  const through = wraps.reduceRight<Perform>(
    (next, { name, wrap, isTrusted }) => (isTrusted ? wrap(next) : oneValue(name, wrap(next))),
    runs,
  );
  // Who never cuts or runs a step again needs no memory of its value.
  if (wraps.every(({ isTrusted }) => isTrusted)) return through;
  const cutsAt = layers.findIndex(({ name, priority }) => name === 'interrupt' && priority === 40);
  const isEdited = cutsAt >= 0 && layers.some(({ step }, index) => step && index > cutsAt);
  return remembering(through, isEdited ? context.holds : undefined);
};

export const modelThrough = (
  layers: readonly Layer[],
  context: LayerContext,
): ((model: Model) => Model) => {
  const wraps = layers.flatMap(({ name, model }) =>
    model === undefined ? [] : [made(name, () => model(context))],
  );
  return (model) => wraps.reduceRight((next, wrap) => wrap(next), model);
};

/** Lets the layers edit the phases of a turn: the outermost last, equals in their order. */
export const turnThrough = (
  layers: readonly Layer[],
  phases: readonly PhaseFactory[],
): readonly PhaseFactory[] =>
  layers
    .toSorted((a, b) => priorityOf(b) - priorityOf(a))
    .reduce((list, { turn }) => (turn === undefined ? list : turn(list)), phases);

export const priorityOf = ({ priority = 100 }: Layer): number => priority;

const runs: Perform = (step) => step.run(1);

/** Performs a step through its layers, and remembers its value: cutting the step then gives that one, and nothing is reported twice. Holds let an interrupt wait until the layers have passed the value on: they may be redacting it. */
const remembering = (through: Perform, holds: Holds | undefined): Perform => {
  const performed: Perform = <T>(step: Step<T>) => {
    const { cut: early$ } = step;
    // Each layer counts attempts from 1, on top of those that were recorded before.
    let earlier = 0;
    let value: { readonly made: T } | undefined;
    let letGo = noop;
    const free = (): void => {
      letGo();
      letGo = noop;
    };
    const run$: Step<T>['run'] = (attempt) =>
      defer(() => {
        free();
        value = undefined;
        const own$ = step.run(attempt + earlier);
        earlier += 1;
        return own$.pipe(
          tap((made) => {
            value = { made };
            if (holds !== undefined) letGo = holds.begin(step.id);
          }),
        );
      });
    const cut$: Step<T>['cut'] =
      early$ && ((why) => defer(() => (value === undefined ? early$(why) : of(value.made))));
    const performed$ = through({ ...step, run: run$, ...(cut$ && { cut: cut$ }) });
    return holds === undefined ? performed$ : performed$.pipe(finalize(free));
  };
  return performed;
};

const oneValue =
  (name: string, perform: Perform): Perform =>
  <T>(step: Step<T>) =>
    oneOf$(
      () => perform(step),
      () => twice(name, step),
      () => {
        if (step.optional === true) return EMPTY;
        if (step.cut === undefined) throw uncuttable(name, step);
        return step.cut({ reason: 'interrupted' });
      },
    );

/** Passes on the one value of a source when it completes. A second one is an error. */
const oneOf$ = <T>(
  source: () => Observable<T>,
  several: () => MillraceError,
  none: () => Observable<T>,
): Observable<T> =>
  defer(source).pipe(
    take(2),
    toArray(),
    thenMap((values) => {
      if (values.length > 1) throw several();
      return values.length === 0 ? none() : of(...values);
    }),
  );

const twice = (name: string, { id }: Pick<Step<unknown>, 'id'>): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' emitted two values for the step '${id}'. Emit one.`,
  );

const uncuttable = (name: string, { id }: Pick<Step<unknown>, 'id'>): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' emitted nothing for the step '${id}', which has no 'cut'. Emit a value.`,
  );

export const readUse = (owner: string, use: unknown): readonly Layer[] => {
  if (use === undefined) return [];
  if (!Array.isArray(use)) throw noLayer(owner);
  return use.flat().map((layer: unknown) => {
    if (!isLayer(layer)) throw noLayer(owner);
    const isPart = (name: string): boolean => name !== 'name' && Object.hasOwn(rules, name);
    // What else a layer has, such as its verbs, is its own. One without any part has misspelt it.
    const hasPart = isInterceptor(layer) || Object.keys(layer).some(isPart);
    const parts = Object.entries(layer).filter(([name]) => !hasPart || isPart(name));
    const { name: _, ...rest } = Object.fromEntries(parts);
    checkOptions(`${owner}: The layer '${layer.name}'`, rest, rules);
    return layer;
  });
};

const rules: Readonly<Record<keyof Layer, Rule>> = {
  name: isText,
  priority: isNumber,
  inherit: oneOf(true, 'voice'),
  single: oneOf(true),
  info: [
    (value) => isRecord(value) && !('type' in Object(value['labels'])),
    "an object without a label 'type'",
  ],
  open: isFunction,
  call: isFunction,
  step: isFunction,
  model: isFunction,
  turn: isFunction,
  on: [
    (value) => Array.isArray(value) && value.every(isInterceptor),
    'a list of interceptors, such as [on(type, operator)]',
  ],
};

const isLayer = (value: unknown): value is Layer =>
  isRecord(value) && typeof value['name'] === 'string' && value['name'] !== '';

const noLayer = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'use' takes a list of interceptors, such as on(type, operator), and layers: objects with a 'name' and some of ${Object.keys(rules).slice(1).join(', ')}.`,
  );
