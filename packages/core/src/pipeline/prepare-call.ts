import { concatMap, map, type Observable } from 'rxjs';
import { noMemory } from '../memory.js';
import { isToPrepare, type Prepared, prepared$, preparedForm } from '../prepared.js';
import type { CallStage } from './call-stage.js';

/** Leads the call through guards and the other interceptors of `prepare`. Nothing is remembered that has not been through all of them. */
export const prepareCall: CallStage = ({ scope, hooks, interruption, isSuperseded, step$ }) =>
  concatMap((state) => {
    const { plan: before, input: asked } = state;
    const prepare$ = (): Observable<Prepared> => prepared$(before, scope, hooks, asked);
    const form = preparedForm(before, scope.call);
    return (isToPrepare(before) ? step$('prepare', prepare$, form) : prepare$()).pipe(
      map(({ plan, input, status }) => {
        if (isSuperseded) interruption.trigger({});
        const [first, ...others] = input;
        const results = first?.role === 'tool' ? first : undefined;
        return {
          ...state,
          plan,
          status,
          results,
          input: results === undefined ? input : others,
          memory: status === 'prepared' ? state.memory : noMemory,
        };
      }),
    );
  });
