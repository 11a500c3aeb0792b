import { type Observable, type Observer, Subscriber, type Subscription } from 'rxjs';

/** Creates a subscriber that can unsubscribe during `subscribe`, which a synchronous source does not return from. */
export const hearing = <T>(observer: Observer<T>): Subscriber<T> =>
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- RxJS 7 has no other way to create one.
  new Subscriber<T>(observer);

/** Subscribes an observer, until its owner unsubscribes. */
export const hear = <T>(
  source$: Observable<T>,
  observer: Observer<T>,
  owner: Subscription,
): void => {
  const subscriber = hearing(observer);
  owner.add(subscriber);
  source$.subscribe(subscriber);
};
