import type { Observable } from 'rxjs';
import { catchError, defer, EMPTY, ignoreElements, map, merge, take, tap } from 'rxjs';
import { contained } from '../flow/contained.js';
import { misuse, toMillraceError } from '../values/errors.js';
import { toInterrupt } from '../flow/interruption.js';
import type { Layer, Context } from '../seams/layer.js';
import { interruptLayer } from '../seams/steps.js';
import { having } from '../values/options.js';
import { layerPlaces } from '../seams/layer-places.js';

/**
 * Interrupts a call when the source emits its first value, with calls below it. A string, or the text of a `message`,
 * becomes the text of the reply. An error of the source is reported by a `handlerError`, and the call continues. Each
 * call subscribes to the source until its reply.
 */
export const interruptOn = (source$: Observable<unknown>): readonly Layer[] => {
  if (!having('subscribe', '')[0](source$)) throw misuse('interruptOn() takes an Observable.');
  const layer: Layer = {
    name: 'interruptOn',
    priority: layerPlaces.outermost,
    call: (context) => (next) => (call) =>
      merge(interruptedBy$([layer], context), next(call)).pipe(take(1)),
  };
  sources.set(layer, source$);
  return [interruptLayer, layer];
};

const sources = new WeakMap<Layer, Observable<unknown>>();

/** Lets the sources of `interruptOn` layers interrupt a call, or one that joins it. Emits nothing. */
export const interruptedBy$ = (
  layers: readonly Layer[],
  { hooks, interruption }: Pick<Context, 'hooks' | 'interruption'>,
): Observable<never> =>
  merge(
    ...layers.map((layer) =>
      defer(() => sources.get(layer) ?? EMPTY).pipe(
        contained(),
        map(toInterrupt),
        catchError((cause: unknown) => {
          const handler = { of: 'interruptOn', name: 'interruptOn', error: toMillraceError(cause) };
          hooks.report(hooks.iteration(), { type: 'handlerError', ...handler });
          return EMPTY;
        }),
        tap((interrupt) => interruption.trigger(interrupt)),
        ignoreElements(),
      ),
    ),
  );
