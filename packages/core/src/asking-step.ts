import { defer, type Observable, tap } from 'rxjs';
import type { Context } from './context.js';
import type { StepForm } from './journal/step.js';
import type { Usage } from './usage.js';

/** What a step needs of a call that asks a model. */
export type AskingNeeds = Pick<Context, 'model' | 'step$' | 'reportUsage' | 'countReplayed'>;

/** Runs a step that asks a model, and tells what it has cost. One that the journal answers asks nobody: those who count requests hear of it here. */
export const askingStep$ = <T extends { readonly usage: Usage }>(
  { model, step$, reportUsage, countReplayed }: AskingNeeds,
  position: string,
  work: (attempt: number) => Observable<T>,
  form: StepForm<T>,
): Observable<T> =>
  defer(() => {
    let isAsked = false;
    const ask$ = (attempt: number): Observable<T> => {
      isAsked = true;
      return work(attempt);
    };
    return step$(position, ask$, form).pipe(
      tap(({ usage }) => {
        reportUsage(usage);
        if (!isAsked) countReplayed({ usage, model: model.name });
      }),
    );
  });
