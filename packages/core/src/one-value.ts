import { Observable } from 'rxjs';

/** Emits what a function makes at subscription, and completes. */
export const made$ = <T>(make: () => T): Observable<T> =>
  new Observable((subscriber) => {
    subscriber.next(make());
    subscriber.complete();
  });
