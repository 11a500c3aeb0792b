import {
  BehaviorSubject,
  concat,
  concatMap,
  defer,
  EMPTY,
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
import type { Below } from './spending.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import { deferInAsyncContext, restoreAsyncContext } from '../flow/async-context.js';
import { contained, failing, thenMap } from '../flow/contained.js';
import type { JoinableDemand } from '../flow/demand.js';
import { MillraceError, misuse, toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import type { Hooks } from './hooks.js';
import type { Holds, Interruption } from '../flow/interruption.js';
import { type Hook, type Interceptor, isInterceptor } from './interceptor.js';
import { isRecord } from '../values/json.js';
import type { Model } from '../models/model.js';
import { checkOptions, isFunction, isNumber, isText, oneOf, type Rule } from '../values/options.js';
import type { PhaseFactory } from './phase.js';
import type { InputSchema } from '../values/schema.js';
import type { Locals, Perform, Step } from '../step.js';
import type { ContextEntry, ContextValues } from '../tools/context-key.js';

/** The context of the layers of a call. Created once, never changed. A layer declares the part it uses. */
export interface LayerContext {
  readonly call: CallInfo;
  /** Emits events, and runs them through interceptors. */
  readonly hooks: Hooks;
  /** Events of the call and its sub-agents, from now on. Hot; ends with the call. */
  readonly events$: Observable<AgentEvent>;
  /** Emits the reply after the last event, or errors. */
  readonly reply$: Observable<Reply>;
  readonly scheduler: SchedulerLike;
  readonly demand: JoinableDemand;
  /** Returns the value of a cell, created on first use. */
  readonly local: Locals;
  /** Performs a step, the only way to ask the outside world. Errors with `invalidState` if the `id` was used before. */
  readonly perform: Perform;
  /** Wraps a model in the layers of the call. Not for use within the `model` of a layer. */
  readonly throughLayers: (model: Model) => Model;
  readonly interruption: Interruption;
  /** Whether the call can be interrupted. */
  readonly isInterruptible: boolean;
  /** Work that must end before a step is cut. */
  readonly holds: Holds;
  readonly values: ContextValues;
  /** The ancestors of this call, outermost first, and itself. */
  readonly lineage: readonly CallInfo[];
  /** The calls that may wait for this one: its lineage, and calls whose tools started it without being its parent. */
  readonly waiters: readonly CallInfo[];
  /** The `id` of the parent's step that makes this call. */
  readonly parentStep: string | undefined;
  /** The tool call that makes this call. */
  readonly above: { readonly below: Below } | undefined;
  /** The layers of the call, outermost first. */
  readonly layers: readonly Layer[];
  readonly labels: CallLabels;
  /** Runs work after the last event was delivered, or on unsubscribe. */
  readonly whenOver: (work: () => void) => void;
  /** The options of the caller, without the defaults of the agent. */
  readonly given: Readonly<Record<string, unknown>>;
}

/** Answers a call. Cold; emits one reply and completes. */
export type Answer = (call: Call) => Observable<Reply>;

/** A feature that `use` adds to an agent or a call. Each part is created once per call. */
export interface Layer {
  /** The name in errors and for `single`. */
  readonly name: string;
  /** Lower is further out. Default: 100. */
  readonly priority?: number;
  /** Also applies to sub-agents; with `voice`, only to those that speak for this agent. */
  readonly inherit?: true | 'voice';
  /** Information about calls with this layer. */
  readonly info?: {
    /** Fields of `CallInfo`, events and tool contexts. They cannot replace a standard field. */
    readonly labels?: CallLabels;
    /** Values of context keys. They override those of the agent. */
    readonly context?: readonly ContextEntry[];
    /** The layer resumes its call, and may interrupt it. */
    readonly resumed?: true;
    /** The layer never interrupts its call: without others that may, steps cost less. */
    readonly observes?: true;
  };
  /** Replaces an earlier layer of the same name. An inherited one replaces the sub-agent's own. */
  readonly single?: true;
  /**
   * Wraps the whole call, from before its first event until after its last, outside of every `call`. An error before
   * it subscribes fails the call before any layer starts.
   */
  readonly open?: (context: LayerContext) => <T>(call$: Observable<T>) => Observable<T>;
  /**
   * Wraps the call: passes it on with `next(call)`, edited or not, no more than once; answers it, for example with `answerWith`; or
   * errors, which fails the call. Emits one reply, which is passed on when the layer completes. If an interrupt comes before the
   * layer passed the call on, the layer is skipped, unless it waits in a step of its context: then the step is cut, and the layer decides.
   * To end the call, trigger `context.interruption`; unsubscribing from `next(call)` reports nothing.
   */
  readonly call?: (context: LayerContext) => (next: Answer) => Answer;
  /**
   * Wraps every step: pass it on with `next(step)`, end it with `step.cut(why)`, or error, which fails the call.
   * Completing empty cuts it with the reason `interrupted`, so outer layers always see one value.
   */
  readonly step?: (context: LayerContext) => (next: Perform) => Perform;
  /** Wraps every model of the call. An error it throws fails the call. */
  readonly model?: (context: LayerContext) => (next: Model) => Model;
  /** Edits the phases of a turn, all of them functions. At equal priority, earlier layers edit first. */
  readonly turn?: (phases: readonly PhaseFactory[]) => readonly PhaseFactory[];
  /** Interceptors and watchers. Within a layer, they are inherited with it. */
  readonly on?: readonly Interceptor[];
}

/** A layer that sets the type of `reply.output` by its schema. */
export interface OutputLayer<
  out Output extends InputSchema | undefined = InputSchema | undefined,
> extends Layer {
  readonly schema: Output;
}

/** The option `use`: layers, interceptors, and lists of layers that belong together. */
export type Use<Output extends InputSchema | undefined = InputSchema | undefined> =
  // `[]` makes TypeScript keep the types of the items of a literal list.
  | readonly (
      Layer | OutputLayer<Output> | readonly (Layer | OutputLayer<Output>)[] | readonly []
    )[]
  | readonly [];

/** The layers of a call, outermost first: its own and inherited ones, without duplicates. */
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
    return trustedOnes.has(layer) ? layer.call(context)(next) : checkedLayer(layer, context, next);
  }, innermost);

const trustedOnes = new WeakSet<Layer>();

/** Marks a layer of this package as correct: it is not checked at run time, and interrupts do not skip it. */
export const trusted = <Own extends Layer>(layer: Own): Own => {
  trustedOnes.add(layer);
  return layer;
};

/** Whether a layer may interrupt its call: layers of other packages may, unless they only observe, and those that resume. */
export const mayInterrupt = (layer: Layer): boolean =>
  layer.info?.resumed ??
  !(layer.info?.observes ?? (trustedOnes.has(layer) || isInterceptor(layer)));

/** The layers that run the hooks of a call. */
export const layersFor = (hooks: readonly Hook[]): readonly Layer[] => [
  ...new Set(hooks.flatMap((hook) => (hook.kind === 'prepare' ? hook.layer : [])).filter(isLayer)),
];

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

/** Checks that a layer passes a call on once and emits one reply. An interrupt skips it until then, or cuts its step. */
const checkedLayer = (
  { name, call: around }: Layer,
  context: LayerContext,
  next: Answer,
): Answer => {
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
          if (hasPassed) throw layerFault(name, 'passed the call on twice', failure);
          if (!isCall(edited)) throw layerFault(name, 'passed on something that is not a call');
          hasPassed = true;
          return next(edited).pipe(tap({ error: (cause: unknown) => (failure = cause) }));
        });
      const own$ = defer(() => around?.({ ...context, perform })(passed$)(call) ?? next(call)).pipe(
        tap({ error: () => (hasPassed = true) }),
      );
      const replied$ = oneOf$<Reply>(
        () => own$.pipe(contained()),
        () => layerFault(name, 'answered with two replies'),
        () => throwError(() => layerFault(name, 'answered with no reply')),
      ).pipe(
        map((reply) => {
          if (isReply(reply)) return of(ownReply(reply, context.call));
          throw layerFault(name, 'emitted something that is not a reply');
        }),
        failing((cause) =>
          cause === failure ? cause : toMillraceError(cause, 'unknown', `In the layer '${name}'`),
        ),
      );
      const passedOver$ = context.interruption.asked$.pipe(
        concatMap(() => steps$.pipe(first((count) => count === 0))),
        restoreAsyncContext(),
        concatMap(() => (hasPassed ? EMPTY : of(next(call)))),
      );
      // NEVER: without an interrupt, only the reply can win.
      return race(replied$, concat(passedOver$, NEVER)).pipe(
        take(1),
        concatMap((reply$) => reply$),
      );
    });
  return answer$;
};

/** Gives a cached reply of another call an id of this call: memory would take it for a known message. */
const ownReply = (reply: Reply, { callId }: CallInfo): Reply =>
  reply.id.startsWith(`${callId}/`) ? reply : { ...reply, id: `${callId}/answer` };

const isCall = (value: unknown): boolean =>
  isRecord(value) && Array.isArray(value['input']) && Array.isArray(value['history']);

const isReply = (value: unknown): value is Reply =>
  isRecord(value) && typeof value['reason'] === 'string' && Array.isArray(value['content']);

const layerFault = (name: string, what: string, cause?: unknown): MillraceError =>
  new MillraceError(
    'invalidState',
    `The layer '${name}' has ${what}. Pass a call on no more than once, and emit one reply: that of 'next', or one of answerWith().`,
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
    (next, { name, wrap, isTrusted }) => (isTrusted ? wrap(next) : checkedStep(name, wrap(next))),
    runs,
  );
  // Trusted layers need no memory of the value: they neither cut nor repeat a step.
  if (wraps.every(({ isTrusted }) => isTrusted)) return through;
  const cutsAt = layers.findIndex(({ name, priority }) => name === 'interrupt' && priority === 40);
  const isEdited = cutsAt >= 0 && layers.some(({ step }, index) => step && index > cutsAt);
  return keepingValue(through, isEdited ? context.holds : undefined);
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

/** Runs the phases of a turn through the layers: the outermost last, equal ones in order. */
export const turnThrough = (
  layers: readonly Layer[],
  phases: readonly PhaseFactory[],
): readonly PhaseFactory[] =>
  layers
    .toSorted((a, b) => priorityOf(b) - priorityOf(a))
    .reduce((list, { name, turn }) => {
      if (turn === undefined) return list;
      try {
        return turn(list);
      } catch (cause) {
        throw toMillraceError(cause, 'config', `The 'turn' of the layer '${name}' failed`);
      }
    }, phases);

export const priorityOf = ({ priority = 100 }: Layer): number => priority;

const runs: Perform = (step) => step.run(1);

/**
 * Performs a step through its layers, and remembers its value: a later cut emits that value. Holds delay an interrupt
 * until the layers, which may redact it, have passed the value on.
 */
const keepingValue = (through: Perform, holds: Holds | undefined): Perform => {
  const performed: Perform = <T>(step: Step<T>) => {
    const { cut: early$ } = step;
    // Each layer counts attempts from 1; recorded attempts are added.
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

const checkedStep =
  (name: string, perform: Perform): Perform =>
  <T>(step: Step<T>) =>
    oneOf$(
      () => perform(step),
      () => stepFault(name, step, 'two values'),
      () => {
        if (step.optional === true) return EMPTY;
        if (step.cut === undefined) throw stepFault(name, step, 'nothing');
        return step.cut({ reason: 'interrupted' });
      },
    );

/** Emits the one value of a source when it completes. A second value is an error. */
const oneOf$ = <T>(
  source: () => Observable<T>,
  several: () => MillraceError,
  none: () => Observable<T>,
): Observable<T> =>
  deferInAsyncContext(source).pipe(
    take(2),
    toArray(),
    thenMap((values) => {
      if (values.length > 1) throw several();
      return values.length === 0 ? none() : of(...values);
    }),
  );

const stepFault = (name: string, { id }: Pick<Step<unknown>, 'id'>, what: string): MillraceError =>
  new MillraceError('invalidState', `The layer '${name}' emitted ${what} for the step '${id}'.`);

export const readUse = (owner: string, use: unknown): readonly Layer[] => {
  if (use === undefined) return [];
  if (!Array.isArray(use)) throw noLayer(owner);
  return use.flat().map((layer: unknown) => {
    if (!isLayer(layer)) throw noLayer(owner);
    const isPart = (name: string): boolean => name !== 'name' && Object.hasOwn(rules, name);
    // A layer may have other properties, such as methods. Without any known part, one was misspelt.
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
