import { defer, Observable, of, type SchedulerLike, type Subscriber, tap } from 'rxjs';
import type { CallInfo } from './call-info.js';
import type { Demand } from './demand.js';
import { MillraceError, misuse } from './errors.js';
import type { Hooks } from './hooks.js';
import { isRecord } from './json.js';
import type { Model } from './model.js';
import type { PhaseFactory } from './phase.js';
import type { Locals, Perform, Step } from './step.js';

/** What the layers of one call share. */
export interface LayerContext {
  readonly call: CallInfo;
  /** Reports events of the call. */
  readonly hooks: Pick<Hooks, 'report' | 'iteration'>;
  readonly scheduler: SchedulerLike;
  readonly demand: Demand;
  /** Returns the value of a cell, created the first time it is asked for. */
  readonly local: Locals;
}

/**
 * An ability that is added to an agent or a call through `use`. Each part is made once per call. The loop knows none of them, so an agent without a layer
 * neither bundles nor runs it.
 */
export interface Layer {
  /** Named in errors, and what `single` goes by. */
  readonly name: string;
  /** Lower is further out. Default: 100. */
  readonly priority?: number;
  /** Also applies to sub-agents; with `voice`, only to those that speak for this agent. */
  readonly inherit?: true | 'voice';
  /** Replaces an earlier layer of its name. An inherited one replaces the sub-agent's own. */
  readonly single?: true;
  /**
   * Wraps every step. A layer has three moves: pass the step on with `next(step)`, end it with `step.cut(why)`, or error, which fails the call. Completing
   * empty is a cut, too: `step.cut({ reason: 'interrupted' })` takes its place, so that layers further out see one value.
   */
  readonly step?: (context: LayerContext) => (next: Perform) => Perform;
  /** Wraps every model that the call asks, whichever it is. */
  readonly model?: (context: LayerContext) => (next: Model) => Model;
  /** Edits the phases of a turn. Of equal priority, earlier layers edit first. */
  readonly turn?: (phases: readonly PhaseFactory[]) => readonly PhaseFactory[];
}

/** What `use` takes: layers, and lists of layers that belong together. */
export type Use = readonly (Layer | readonly Layer[])[];

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

/** Those of a call's layers that also apply to a call which its tools make. */
export const handedDown = (layers: readonly Layer[], speaks: boolean): readonly Layer[] =>
  layers.filter(({ inherit }) => inherit === true || (inherit === 'voice' && speaks));

/** Composes the layers around steps. Without any, performing a step is running it. */
export const performThrough = (layers: readonly Layer[], context: LayerContext): Perform => {
  const wraps = layers.flatMap(({ name, step }) =>
    step === undefined ? [] : [{ name, wrap: step(context) }],
  );
  if (wraps.length === 0) return runs;
  const through = wraps.reduceRight<Perform>(
    (next, { name, wrap }) => oneValue(name, wrap(next)),
    runs,
  );
  return (step) => through(remembering(step));
};

/** Composes the layers around models. */
export const modelThrough = (
  layers: readonly Layer[],
  context: LayerContext,
): ((model: Model) => Model) => {
  const wraps = layers.flatMap(({ model }) => (model === undefined ? [] : [model(context)]));
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

const priorityOf = ({ priority = 100 }: Layer): number => priority;

const runs: Perform = (step) => step.run(1);

/** Numbers the attempts of a step, and remembers the value of the last one: cutting the step then gives that one, and nothing is reported twice. */
const remembering = <T>(step: Step<T>): Step<T> => {
  const { cut: early$ } = step;
  let attempts = 0;
  let made: { readonly value: T } | undefined;
  const run$: Step<T>['run'] = (attempt) =>
    defer(() => {
      made = undefined;
      attempts += 1;
      return step.run(attempt + attempts - 1).pipe(tap((value) => (made = { value })));
    });
  const numbered: Step<T> = { ...step, run: run$ };
  if (early$ === undefined) return numbered;
  const cut$: Step<T>['cut'] = (why) =>
    defer(() => (made === undefined ? early$(why) : of(made.value)));
  const remembered: Step<T> = { ...numbered, cut: cut$ };
  return remembered;
};

/** Holds a layer to one value per step, passed on when the layer completes, and cuts the step in its place if there is none. */
const oneValue =
  (name: string, perform: Perform): Perform =>
  <T>(step: Step<T>) =>
    new Observable<T>((subscriber) => {
      const values: T[] = [];
      const next = (value: T): void => {
        if (values.push(value) > 1) subscriber.error(twice(name, step));
      };
      const complete = (): void => {
        if (values.length > 0 || step.optional === true) {
          values.forEach((value) => subscriber.next(value));
          subscriber.complete();
        } else if (step.cut === undefined) subscriber.error(uncuttable(name, step));
        else subscriber.add(step.cut({ reason: 'interrupted' }).subscribe(subscriber));
      };
      const error = (cause: unknown): void => subscriber.error(cause);
      let inner: Subscriber<T> | undefined;
      // Before the subscription: a step that is synchronous must be left from within it.
      subscriber.add(() => inner?.unsubscribe());
      new Observable<T>((own) => {
        inner = own;
        perform(step).subscribe(own);
      }).subscribe({ next, error, complete });
    });

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

/** Reads a list of layers, or throws a `config` error that names the fix. */
export const readUse = (owner: string, use: unknown): readonly Layer[] => {
  if (use === undefined) return [];
  if (!Array.isArray(use)) throw noLayer(owner);
  return use.flat().map((layer: unknown) => {
    if (!isLayer(layer)) throw noLayer(owner);
    // What a layer knows of itself, such as the options of a budget, is no function.
    const odd = Object.entries(layer).find(
      ([part, value]) => typeof value === 'function' && !parts.includes(part),
    );
    if (odd !== undefined) {
      throw misuse(
        `${owner}: The layer '${layer.name}' has no part '${odd[0]}'. Its parts are: ${parts.join(', ')}.`,
      );
    }
    return layer;
  });
};

const parts = ['name', 'priority', 'inherit', 'single', 'step', 'model', 'turn'];

const isLayer = (value: unknown): value is Layer =>
  isRecord(value) && typeof value['name'] === 'string' && value['name'] !== '';

const noLayer = (owner: string): MillraceError =>
  misuse(
    `${owner}: 'use' takes a list of layers: objects with a 'name' and some of ${parts.slice(1).join(', ')}.`,
  );
