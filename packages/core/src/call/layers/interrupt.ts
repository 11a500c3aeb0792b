import { concatMap, defer, EMPTY, takeUntil } from 'rxjs';
import type { Layer } from '../../seams/layer.js';
import type { Step } from '../../step.js';

/** On an interrupt, cuts the running step, and each later one immediately. Steps without `cut`, such as saving, complete. */
export const interruptLayer: Layer = {
  name: 'interrupt',
  priority: 40,
  step:
    ({ interruption, holds }) =>
    (next) =>
    <T>(step: Step<T>) =>
      step.cut === undefined && step.optional !== true
        ? next(step)
        : defer(() =>
            interruption.current === undefined
              ? next(step).pipe(
                  takeUntil(interruption.signal$.pipe(concatMap(() => holds.none$(step.id)))),
                )
              : EMPTY,
          ),
};
