import type { Observable } from 'rxjs';
import { catchError, defer, EMPTY, ignoreElements, map, merge, take, tap } from 'rxjs';
import { contained } from '../flow/contained.js';
import { misuse, toMillraceError } from '../values/errors.js';
import type { AgentEvent } from '../events.js';
import { type Interrupt, toInterrupt } from '../flow/interruption.js';
import type { Block } from '../values/message.js';
import type { Layer, Context } from '../seams/layer.js';
import { interruptLayer } from '../seams/steps.js';
import { having } from '../values/options.js';
import { layerPlaces } from '../seams/layer-places.js';

/** A value that interrupts a call: the text of the reply, or a mere signal, such as a time, an event or nothing. */
export type InterruptSignal =
  | string
  | (Interrupt & { readonly name?: never })
  | WithContent
  | { readonly message: WithContent }
  | AgentEvent
  | DomEvent
  | number
  | boolean
  | null
  | undefined
  // eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- a `Subject<void>` is a source
  | void;

/** A message or a reply. */
interface WithContent {
  readonly content: readonly Block[];
}

/** An event of the platform, such as a click. */
interface DomEvent {
  readonly type: string;
  readonly timeStamp: number;
}

/**
 * Interrupts a call when the source emits its first value, with calls below it. A string, a `message`, or the text of a message,
 * becomes the text of the reply; other values have none. An error of the source is reported by a `handlerError`, and the call continues. Each
 * call subscribes to the source until its reply.
 */
export function interruptOn(source$: Observable<InterruptSignal>): readonly Layer[];
export function interruptOn<Signal>(
  source$: Observable<Signal> & (unknown extends Signal ? unknown : never),
): readonly Layer[];
export function interruptOn(source$: Observable<unknown>): readonly Layer[] {
  if (!having('subscribe', '')[0](source$)) throw misuse('interruptOn() takes an Observable.');
  const layer: Layer = {
    name: 'interruptOn',
    priority: layerPlaces.outermost,
    call: (context) => (next) => (call) =>
      merge(interruptedBy$([layer], context), next(call)).pipe(take(1)),
  };
  sources.set(layer, source$);
  return [interruptLayer, layer];
}

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
