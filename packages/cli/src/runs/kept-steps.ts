import {
  type CallStore,
  type CallSummary,
  type fork$,
  steps$,
  type StepSummary,
} from 'millrace/journal';
import { catchError, forkJoin, map, type Observable, of, toArray } from 'rxjs';
import { oneLine } from '../presentation/shorten.js';
import type { Theme } from '../presentation/theme.js';

/** Emits the answers and tool results that a fork keeps, as text, with edited ones marked. Empty for other runs. */
export const keptSteps$ = (
  store: Pick<CallStore, 'driver'>,
  run: CallSummary,
  theme: Theme,
): Observable<string> => {
  if (run.status === 'unreadable' || run.forkedFrom === undefined) return of('');
  const { callId, at } = run.forkedFrom;
  const stepsOf = (id: string): Observable<readonly StepSummary[]> =>
    steps$(store, id).pipe(
      toArray(),
      // The original run may have been removed.
      catchError(() => of([])),
    );
  return forkJoin([stepsOf(run.callId), stepsOf(callId)]).pipe(
    map(([steps, before]) => {
      const former = new Map(before.map(({ id, summary }) => [id, summary]));
      return keptBefore(at, steps)
        .filter(({ kind }) => kind === 'model' || kind === 'tool')
        .map((step) => lineOf(step, former.get(step.id) ?? step.summary, theme))
        .join('');
    }),
  );
};

const keptBefore = (
  at: Parameters<typeof fork$>[2]['at'],
  steps: readonly StepSummary[],
): readonly StepSummary[] => {
  const end = steps.findIndex(({ id, iteration = 0 }) =>
    typeof at === 'string' ? id === at : iteration >= at.iteration,
  );
  return end === -1 ? steps : steps.slice(0, end);
};

const lineOf = (
  { id, summary }: StepSummary,
  former: string,
  { colors, ...look }: Theme,
): string => {
  const isEdited = summary !== former;
  const head = `  ${isEdited ? 'edited' : 'kept'} ${id}  `;
  const line = `${head}${oneLine(summary, Math.max(look.width - head.length, 8), look)}\n`;
  return isEdited ? colors.yellow(line) : colors.dim(line);
};
