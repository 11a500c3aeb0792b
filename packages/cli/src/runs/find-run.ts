import { MillraceError } from '@millrace/core';
import { type CallSummary, calls$ } from '@millrace/core/journal';
import { filter, map, type Observable, toArray } from 'rxjs';
import type { RunStore } from './open-run-store.js';
import { shortId } from './short-id.js';
import { describePlace } from './store-place.js';

/** Emits the one run whose id is this, or begins with it. Errors with `invalidRequest` where there is none, or more than one. */
export const findRun$ = (
  { store, place }: Pick<RunStore, 'store' | 'place'>,
  wanted: string,
): Observable<CallSummary> =>
  calls$(store).pipe(
    filter(({ callId }) => callId.startsWith(wanted)),
    toArray(),
    map((found) => {
      const [first, ...more] = found;
      const run = found.find(({ callId }) => callId === wanted) ?? first;
      if (run === undefined) throw unknown(wanted, describePlace(place));
      if (more.length > 0 && run.callId !== wanted) throw ambiguous(wanted, found);
      return run;
    }),
  );

const unknown = (wanted: string, where: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `There is no run '${wanted}' in ${where}. "millrace runs" lists those that there are.`,
  );

const shown = 5;

const ambiguous = (wanted: string, found: readonly CallSummary[]): MillraceError => {
  const ids = found.map(({ callId }) => callId);
  const some = ids.slice(0, shown).map((id) => shortId(id, ids));
  const more = ids.length > shown ? ` and ${ids.length - shown} more` : '';
  return new MillraceError(
    'invalidRequest',
    `The ids of ${ids.length} runs begin with '${wanted}': ${some.join(', ')}${more}. Write more of the one that you mean.`,
  );
};
