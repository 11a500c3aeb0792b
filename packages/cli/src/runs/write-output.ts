import { concat, defer, ignoreElements, map, merge, type Observable, of, take } from 'rxjs';
import { createDemand } from 'millrace';
import type { Outcome } from '../ask.js';
import type { Environment } from '../environment.js';
import type { Output } from '../terminal/output.js';
import { writeTo } from '../terminal/write-to.js';

/** Writes texts until they end or a signal stops it, and emits how it ended. Errors with the texts or the output. */
export const writeOutput$ = (
  text$: Observable<string>,
  output: Output,
  { interrupt$, terminate$ }: Required<Pick<Environment, 'interrupt$' | 'terminate$'>>,
): Observable<Outcome> =>
  defer(() => {
    const outcome =
      (result: Outcome) =>
      (end$: Observable<unknown>): Observable<Outcome> =>
        end$.pipe(map(() => result));
    return merge(
      output.broken$,
      interrupt$.pipe(outcome('interrupted')),
      terminate$.pipe(outcome('terminated')),
      concat(
        text$.pipe(writeTo(output.stream, createDemand()), ignoreElements()),
        of<Outcome>('answered'),
      ),
    ).pipe(take(1));
  });
