import type { Observable } from 'rxjs';
import { type Eventual, deferWork } from '../../flow/eventual.js';
import type { Layer, Context } from '../../seams/layer.js';
import { trusted } from '../../seams/through.js';
import { layerPlaces } from '../../seams/layer-places.js';
import { callProgress } from '../../seams/progress.js';

/** Starts a call, after the outer layers. */
export const preCallLayer: Layer = trusted({
  name: 'preCall',
  priority: layerPlaces.preCall,
  call: (context) => (next) => (call) => ensurePreCall$(context, () => next(call)),
});

/** Continues after `preCall`, which is emitted once. A veto hides the input: each call begins with this event. */
export const ensurePreCall$ = <T>(
  { hooks, local }: Pick<Context, 'hooks' | 'local'>,
  next: () => Eventual<T>,
): Observable<T> =>
  deferWork(() => {
    const state = local(callProgress);
    const { input } = state;
    state.input = undefined;
    if (input === undefined) return next();
    return hooks.emit(0, { type: 'preCall', input }, (event) => {
      if (event === undefined) hooks.report(0, { type: 'preCall', input: [] });
      return next();
    });
  });
