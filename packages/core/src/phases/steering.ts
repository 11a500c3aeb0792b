import { concatMap, defaultIfEmpty, defer, EMPTY, from, identity, map, toArray } from 'rxjs';
import type { Context } from '../context.js';
import { isMessage } from '../is-message.js';
import type { StepForm } from '../step.js';
import type { UserMessage } from '../message.js';
import { isArrayOf } from '../shape.js';
import { type Phase, phase } from '../phase.js';
import { addInput } from '../run.js';
import type { Steer } from '../steering.js';

type Needs = Pick<Context, 'hooks' | 'steering' | 'prepareInput$' | 'perform'>;

/** Adds what was said to the running call since its last turn, so that the next request has it. */
export const steering = ({ hooks, steering: said, prepareInput$, perform }: Needs): Phase => {
  if (said === undefined) return identity;
  return phase((run) => {
    const next = run.iteration + 1;
    // A step that is replayed takes nothing of what is said now.
    let taken: readonly Steer[] = [];
    const work$ = defer(() => {
      taken = said.waiting();
      if (taken.length === 0) return EMPTY;
      return from(taken).pipe(
        concatMap(({ messages }, index) =>
          prepareInput$(messages, `${next}/${index}`).pipe(defaultIfEmpty([])),
        ),
        toArray(),
      );
    });
    return perform({
      kind: 'steering',
      id: `${next}/steering`,
      input: undefined,
      run: () => work$,
      optional: true,
      form: steeredForm,
    }).pipe(
      map((all) => {
        const messages = all.flat();
        messages.forEach((message) => hooks.report(next, { type: 'steered', message }));
        taken.forEach(({ settle }, index) =>
          settle(
            all[index]?.length === 0
              ? { status: 'notDelivered', why: 'vetoed' }
              : { status: 'delivered', iteration: next },
          ),
        );
        return messages.length > 0 ? addInput(run, messages) : run;
      }),
      defaultIfEmpty(run),
    );
  });
};

const steeredForm: StepForm<readonly (readonly UserMessage[])[]> = {
  isWritten: isArrayOf(isArrayOf(isMessage)),
};
