import type { Observable } from 'rxjs';
import { catchError, defer, EMPTY, ignoreElements, map, merge, take, tap } from 'rxjs';
import { contained } from '../flow/contained.js';
import { misuse, toMillraceError } from '../values/errors.js';
import { toInterrupt } from '../flow/interruption.js';
import type { Layer, LayerContext } from '../seams/layer.js';
import { having } from '../values/options.js';

/**
 * Interrupts a call politely when the source emits its first value: a string, or the text of a `message`, is the text of the reply. Calls below it are interrupted with it. If
 * the source errors, a `handlerError` reports it, and the call continues. The source is subscribed to with each call, and left with its reply.
 */
export const interruptOn = (source$: Observable<unknown>): Layer => {
  if (!having('subscribe', '')[0](source$)) throw misuse('interruptOn() takes an Observable.');
  const layer: Layer = {
    name: 'interruptOn',
    // Outside of all that may wait.
    priority: -Number.MAX_VALUE,
    call: (context) => (next) => (call) =>
      merge(interruptedBy$([layer], context), next(call)).pipe(take(1)),
  };
  sources.set(layer, source$);
  return layer;
};

const sources = new WeakMap<Layer, Observable<unknown>>();

/** Lets the sources of such layers interrupt a call, and emits nothing: also one that a call with these layers joins. */
export const interruptedBy$ = (
  layers: readonly Layer[],
  { hooks, interruption }: Pick<LayerContext, 'hooks' | 'interruption'>,
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
