import { EMPTY, type Observable, ReplaySubject } from 'rxjs';
import { toMillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import { type Appender, createAppender } from './appender.js';
import type { CallStoreDriver } from './call-store-driver.js';

/** Who may write down a call. */
export interface OpenWriter {
  /** Emits when the call may be written, or errors where it may not. */
  readonly appender$: Observable<Appender>;
  /** Gives the right back when all is written that was pushed, also where nobody waits for it. */
  readonly close: () => void;
}

/** Takes the right to write down a call, and holds it until it is closed. */
export const openWriter = (driver: CallStoreDriver, callId: string): OpenWriter => {
  const appender$ = new ReplaySubject<Appender>(1);
  let appender: Appender | undefined;
  let isClosed = false;
  const claim = driver
    .claim$(callId)
    .pipe(failAs('store', 'The journal could not be opened'))
    .subscribe({
      next: (granted) => {
        appender = createAppender(granted);
        appender$.next(appender);
      },
      error: (cause: unknown) => {
        if (appender === undefined) appender$.error(toMillraceError(cause));
        else appender.fail(cause);
      },
    });
  return {
    appender$,
    close: () => {
      if (isClosed) return;
      isClosed = true;
      const release = (): void => claim.unsubscribe();
      const rest$ = appender?.written$() ?? EMPTY;
      rest$.subscribe({ error: release, complete: release });
    },
  };
};
