import { concatMap, defer, EMPTY, finalize, identity, noop } from 'rxjs';
import { cutBy, type Interruption } from '../flow/interruption.js';
import { hearInContext } from '../flow/async-context.js';
import { gather, oneValue } from '../flow/gather.js';
import { andThen, atOnce, type Eventual, deferWork } from '../flow/eventual.js';
import { cell, type Cut, type Perform, type Step, type KernelStep } from '../step.js';
import { MillraceError } from '../values/errors.js';
import type { Context, Layer } from './layer.js';
import { made, trustedOnes } from './through.js';
import { layerPlaces } from './layer-places.js';

/**
 * The life of a step: `performThrough` runs it through the layers of its call. On an interrupt, `interruptLayer` cuts it, once nothing holds
 * it. A cut emits the value that the step has made, if it has, and what its `cut` returns otherwise.
 */
export const performThrough = (layers: readonly Layer[], context: Context): KernelPerform => {
  const wraps = layers.flatMap((layer) => {
    const { name, step } = layer;
    if (step === undefined) return [];
    return [{ name, wrap: made(name, () => step(context)), isTrusted: trustedOnes.has(layer) }];
  });
  if (wraps.length === 0) return ({ work }) => work(1);
  const through = wraps.reduceRight<Perform>(
    (next, { name, wrap, isTrusted }) => (isTrusted ? wrap(next) : checkedStep(name, wrap(next))),
    (step) => step.run(1),
  );
  // Trusted layers neither cut nor repeat a step. `interruptLayer` is untrusted on purpose: `checkedStep` makes a cut of its empty result.
  if (wraps.every(({ isTrusted }) => isTrusted)) return (step) => atOnce(through(stepOf(step)));
  const cutsAt = layers.indexOf(interruptLayer);
  // Layers within (further in the list) may still redact a value: an interrupt must not emit it before they have passed it on, so the step is held until then.
  const hasLayersWithin = cutsAt >= 0 && layers.some(({ step }, index) => step && index > cutsAt);
  return keepingValue(through, hasLayersWithin ? context.interruption : undefined);
};

/** Performs a step through the layers of its call. Without layers of steps, it is a function call. */
export type KernelPerform = <T>(step: KernelStep<T>) => Eventual<T>;

/** As `context.perform`, for the kernel: a value that is there needs no Observable. */
export const perform = <T>({ local }: Pick<Context, 'local'>, step: KernelStep<T>): Eventual<T> =>
  local(performer).perform(step);

/** Performs the steps of a call. Set when it is created. */
export const performer = cell('call', (): { perform: KernelPerform } => ({
  perform: ({ work }) => work(1),
}));

/** The step as layers see it. */
export const stepOf = <T>({ work, cut, ...given }: KernelStep<T>): Step<T> => {
  const run$: Step<T>['run'] = (attempt) => deferWork(() => work(attempt));
  const cut$: Step<T>['cut'] = cut && ((why) => deferWork(() => cut(why)));
  const step: Step<T> = { ...given, run: run$, ...(cut$ && { cut: cut$ }) };
  return step;
};

export const kernelStepOf = <T>({ run, ...step }: Step<T>): KernelStep<T> => ({
  ...step,
  work: run,
});

/**
 * Performs a step through its layers, and remembers its value: a later cut emits that value. Holds delay an interrupt
 * until the layers, which may redact it, have passed the value on.
 */
const keepingValue = (
  through: Perform,
  interruption: Pick<Interruption, 'hold'> | undefined,
): KernelPerform => {
  const performed: KernelPerform = <T>({ work, cut, ...step }: KernelStep<T>) => {
    // Each layer that repeats a step asks for attempt 1: those made here are added. (A journal asks for the one after those it has recorded.)
    let attemptsMade = 0;
    let value: { readonly it: T } | undefined;
    let release = noop;
    const free = (): void => {
      release();
      release = noop;
    };
    const keepingWork = (attempt: number): Eventual<T> => {
      free();
      value = undefined;
      const nth = attempt + attemptsMade;
      attemptsMade += 1;
      return andThen(work(nth), (it) => {
        value = { it };
        if (interruption !== undefined) release = interruption.hold(step.id);
        return it;
      });
    };
    const cutLate = cut && ((why: Cut) => (value === undefined ? cut(why) : value.it));
    const performed$ = through(
      stepOf({ ...step, work: keepingWork, ...(cutLate && { cut: cutLate }) }),
    );
    return interruption === undefined ? atOnce(performed$) : performed$.pipe(finalize(free));
  };
  return performed;
};

const checkedStep =
  (name: string, performed: Perform): Perform =>
  <T>(step: Step<T>) =>
    deferWork(() =>
      gather(
        () => performed(step),
        oneValue<T, T>(
          identity,
          () => stepFault(name, step, 'two values'),
          () => {
            if (step.optional === true) return EMPTY;
            if (step.cut === undefined) throw stepFault(name, step, 'nothing');
            return step.cut({ reason: 'interrupted' });
          },
        ),
        { listen: hearInContext },
      ),
    );

const stepFault = (name: string, { id }: Pick<Step<unknown>, 'id'>, what: string): MillraceError =>
  new MillraceError('invalidState', `The layer '${name}' emitted ${what} for the step '${id}'.`);

/**
 * On an interrupt, unsubscribes from the running step and completes empty, so that `checkedStep` calls its `cut`; each later step is cut
 * immediately. Steps without `cut`, such as saving, complete.
 * Belongs in the list of each layer that may interrupt: `use: [[interruptLayer, myLayer]]`. A call without it cannot be interrupted, and its steps cost less.
 */
export const interruptLayer: Layer = {
  name: 'interrupt',
  priority: layerPlaces.interrupt,
  inherit: true,
  step:
    ({ interruption }) =>
    (next) =>
    <T>(step: Step<T>) => {
      if (step.cut === undefined && step.optional !== true) return next(step);
      // While recorded steps are replayed, an interrupt waits (`signal$`); a `wait` is cut even then (`asked$`).
      const signal$ = step.kind === 'wait' ? interruption.asked$ : interruption.signal$;
      const cut$ = signal$.pipe(concatMap(() => interruption.released$(step.id)));
      return defer(() =>
        interruption.current === undefined ? next(step).pipe(cutBy(cut$)) : EMPTY,
      );
    },
};

/** Whether something may interrupt the call. Without, steps cost less. */
export const isInterruptible = ({ layers }: Pick<Context, 'layers'>): boolean =>
  layers.includes(interruptLayer);

/** Holds a step while work is done, if the call can be interrupted. */
export const holding = <T>(
  context: Pick<Context, 'interruption' | 'layers'>,
  stepId: string,
  work: () => Eventual<T>,
): Eventual<T> => {
  if (!isInterruptible(context)) return work();
  return defer(() => deferWork(work).pipe(finalize(context.interruption.hold(stepId))));
};
