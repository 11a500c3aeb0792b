import type { Demand } from 'millrace';
import {
  asapScheduler,
  asyncScheduler,
  Observable,
  type OperatorFunction,
  type SchedulerAction,
  type Subscription,
  takeUntil,
} from 'rxjs';

/** A comment of server-sent events, which clients ignore. */
export const heartbeat = ': \n\n';

export interface JoinOptions {
  /** Sends a `heartbeat` at these intervals, in milliseconds, while the demand is open. Default: none. */
  readonly heartbeatMs?: number | undefined;
  readonly demand?: Pick<Demand, 'isOpen'> | undefined;
  /** Follows the last string, unless they end with an error. Default: none. */
  readonly last?: string | undefined;
}

/**
 * Joins the strings that are emitted in one turn of the event loop, up to 16, and encodes them. The end follows the last of them, and so
 * does an error. One operator for all that is done with texts: each stream that is open holds its own.
 */
export const joinTexts =
  <T>(
    encode: (text: string) => T,
    { heartbeatMs, demand, last = '' }: JoinOptions = {},
  ): OperatorFunction<string, T> =>
  (text$) =>
    new Observable((subscriber) => {
      let texts: string[] = [];
      let turn: Subscription | undefined;
      const flush = (): void => {
        turn?.unsubscribe();
        turn = undefined;
        const joined = texts.join('');
        texts = [];
        if (joined !== '') subscriber.next(encode(joined));
      };
      const push = (text: string): void => {
        if (texts.push(text) >= mostTogether) flush();
        else turn ??= asapScheduler.schedule(flush);
      };
      // Ends a source that emits while it is subscribed to, when the reader has left.
      const left$ = new Observable<void>((left) => subscriber.add(() => left.next()));
      subscriber.add(() => turn?.unsubscribe());
      if (heartbeatMs !== undefined) {
        subscriber.add(
          repeated(heartbeatMs, () => {
            if (demand?.isOpen !== false) push(heartbeat);
          }),
        );
      }
      return text$.pipe(takeUntil(left$)).subscribe({
        next: push,
        error: (cause: unknown) => {
          flush();
          subscriber.error(cause);
        },
        complete: () => {
          texts.push(last);
          flush();
          subscriber.complete();
        },
      });
    });

const mostTogether = 16;

/** As `interval()`, with a quarter of its memory. */
const repeated = (everyMs: number, work: () => void): Subscription =>
  asyncScheduler.schedule(function again(this: SchedulerAction<void>) {
    work();
    this.schedule(undefined, everyMs);
  }, everyMs);
