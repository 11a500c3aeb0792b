import { concatMap, map, type Observable, of, race } from 'rxjs';
import type { Step } from '../step.js';
import { noMemory } from '../memory.js';
import { isToPrepare, type Prepared, prepared$, preparedForm } from '../prepared.js';
import type { CallStage } from './call-stage.js';

/** Leads the call through guards and the other interceptors of `prepare`. Nothing is remembered that has not been through all of them. */
export const prepareCall: CallStage = ({ scope, hooks, interruption, isSuperseded, perform }) =>
  concatMap((state) => {
    const { plan: before, input: asked } = state;
    let hasBegun = false;
    const prepare$ = (): Observable<Prepared> => {
      hasBegun = true;
      return prepared$(before, scope, hooks, asked);
    };
    const interrupted$ = of<Prepared>({ plan: before, input: asked, status: 'interrupted' });
    const step: Step<Prepared> = {
      kind: 'prepare',
      id: 'prepare',
      input: asked,
      run: prepare$,
      // Interceptors that need no time have seen the input of a call that is interrupted from the start.
      cut: () => (hasBegun ? interrupted$ : race(prepare$(), interrupted$)),
      form: preparedForm(before, scope.call),
    };
    return (isToPrepare(before) ? perform(step) : step.run(1)).pipe(
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
