import { map, of } from 'rxjs';
import type { Context } from '../context.js';
import { type Phase, phase } from '../phase.js';
import { addInput } from '../run.js';

/** Adds what was said to the running call since its last turn, so that the next request has it. */
export const steering = ({
  hooks,
  steering: steered,
  step$,
}: Pick<Context, 'hooks' | 'steering' | 'step$'>): Phase =>
  phase((run) => {
    if (steered === undefined) return of(run);
    const next = run.iteration + 1;
    const taken = steered.waiting();
    return step$(`${next}/steering`, () => of(taken.flatMap(({ messages }) => messages))).pipe(
      map((messages) => {
        messages.forEach((message) => hooks.report(next, { type: 'steered', message }));
        taken.forEach(({ settle }) => settle({ status: 'delivered', iteration: next }));
        return messages.length > 0 ? addInput(run, messages) : run;
      }),
    );
  });
