import { catchError, concat, defer, EMPTY, type Observable, tap, throwError } from 'rxjs';
import { misuse, toMillraceError } from '../errors.js';
import type { Model, ModelChunk, ModelContext, ModelRequest } from '../model.js';
import { dropWarning, supportedOptions } from '../request-options.js';
import { around } from './around.js';
import { checkModel } from './check-model.js';
import { nothingYet, progressBehind, voiding$ } from './progress.js';
import { ready } from './ready.js';

/**
 * Asks the first model, and each further one when the one before fails with a retryable error before it has
 * shown anything. Each change is announced by a `modelFallback` event. An option that only some of the models
 * take is dropped for the others, with a `warning`.
 */
export const fallback = (...models: readonly Model[]): Model => {
  models.forEach((model) => {
    checkModel('fallback()', model);
  });
  const [first, ...others] = models.map(ready);
  if (first === undefined || others.length === 0) {
    throw misuse('fallback() needs a model, and at least one to fall back on.');
  }
  const unsupported = (first.unsupported ?? []).filter((option) =>
    others.every((model) => model.unsupported?.includes(option)),
  );
  return around(first, (request, context) => answer$(first, others, request, context), {
    unsupported,
  });
};

const answer$ = (
  model: Model,
  [next, ...rest]: readonly Model[],
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> =>
  defer(() => {
    let progress = nothingYet;
    return model.stream$(forModel(model, request, context), context).pipe(
      tap((chunk) => {
        progress = progressBehind(progress, chunk);
      }),
      catchError((cause: unknown) => {
        const error = toMillraceError(cause);
        if (next === undefined || progress.isShown || progress.isWhole || !error.retryable) {
          return throwError(() => error);
        }
        // Whoever hears of the change may leave, and then the next model is not asked.
        const told$ = defer(() => {
          context.report({ type: 'modelFallback', from: model.name, to: next.name, error });
          return EMPTY;
        });
        return concat(told$, voiding$(progress, error), answer$(next, rest, request, context));
      }),
    );
  });

const forModel = (
  model: Model,
  { messages, ...wanted }: ModelRequest,
  { report }: ModelContext,
): ModelRequest => {
  const { options, dropped } = supportedOptions(model, wanted);
  dropped.forEach((option) => report(dropWarning(model, option)));
  return { ...options, messages };
};
