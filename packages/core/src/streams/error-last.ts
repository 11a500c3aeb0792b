import { catchError, concat, defer, EMPTY, type Observable, type OperatorFunction } from 'rxjs';

/** Holds an error of the source back until an operator that lets values wait has emitted all of them. */
export const errorLast =
  <In, Out>(operator: OperatorFunction<In, Out>): OperatorFunction<In, Out> =>
  (source) =>
    defer(() => {
      let end$: Observable<never> = EMPTY;
      const quiet$ = source.pipe(
        catchError((error: unknown) => {
          end$ = defer(() => {
            throw error;
          });
          return EMPTY;
        }),
      );
      return concat(
        quiet$.pipe(operator),
        defer(() => end$),
      );
    });
