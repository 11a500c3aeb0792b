import {
  asapScheduler,
  NEVER,
  Observable,
  type OperatorFunction,
  type Subscription,
  takeUntil,
} from 'rxjs';

/** A comment of server-sent events, which clients ignore. */
export const heartbeat = ': \n\n';

/**
 * Joins the strings that are emitted in one turn of the event loop, up to 16, and sends a `heartbeat` at each beat. The end
 * follows the last of them, and so does an error. One operator for all of it: each stream that is open holds its own.
 */
export const joinTexts =
  (beat$: Observable<unknown> = NEVER): OperatorFunction<string, string> =>
  (text$) =>
    new Observable((subscriber) => {
      let texts: string[] = [];
      let turn: Subscription | undefined;
      const flush = (): void => {
        turn?.unsubscribe();
        turn = undefined;
        const joined = texts.join('');
        texts = [];
        if (joined !== '') subscriber.next(joined);
      };
      const push = (text: string): void => {
        if (texts.push(text) >= mostTogether) flush();
        else turn ??= asapScheduler.schedule(flush);
      };
      const error = (cause: unknown): void => {
        flush();
        subscriber.error(cause);
      };
      // Ends a source that emits while it is subscribed to, when the reader has left.
      const left$ = new Observable<void>((left) => subscriber.add(() => left.next()));
      subscriber.add(() => turn?.unsubscribe());
      subscriber.add(beat$.subscribe({ next: () => push(heartbeat), error }));
      return text$.pipe(takeUntil(left$)).subscribe({
        next: push,
        error,
        complete: () => {
          flush();
          subscriber.complete();
        },
      });
    });

const mostTogether = 16;
