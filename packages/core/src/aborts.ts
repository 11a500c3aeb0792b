import { defer, fromEvent, map, NEVER, type Observable, of, share, take } from 'rxjs';

/** One listener a signal, however many calls share it: Node warns of more than ten. */
const shared = new WeakMap<AbortSignal, Observable<unknown>>();

/** Emits the reason of a signal once, also when it has aborted before; never without a signal. */
export const aborts$ = (signal: AbortSignal | undefined): Observable<unknown> =>
  signal === undefined
    ? NEVER
    : defer(() => (signal.aborted ? of(signal.reason) : listening$(signal)).pipe(take(1)));

const listening$ = (signal: AbortSignal): Observable<unknown> => {
  const known = shared.get(signal);
  if (known !== undefined) return known;
  const created = fromEvent(signal, 'abort').pipe(
    map((): unknown => signal.reason),
    share(),
  );
  shared.set(signal, created);
  return created;
};
