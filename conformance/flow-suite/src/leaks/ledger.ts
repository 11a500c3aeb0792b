import { defer, finalize, type MonoTypeOperatorFunction } from 'rxjs';

/** Counts what is open: subscriptions, and objects that somebody still holds. */
export interface Ledger {
  /** Counts the subscriptions to a source. */
  counted<T>(): MonoTypeOperatorFunction<T>;
  /** Counts an object until it has been collected. */
  held<T extends object>(object: T): T;
  readonly subscriptions: Count;
  /** Objects. One that has been collected counts until a turn of the event loop has passed. */
  readonly objects: Count;
}

/** How many there have been in all, and how many there still are. */
export interface Count {
  readonly all: number;
  readonly left: number;
}

/** Makes a ledger. */
export const createLedger = (): Ledger => {
  const subscriptions = { all: 0, left: 0 };
  const objects = { all: 0, left: 0 };
  const registry = new FinalizationRegistry(() => {
    objects.left -= 1;
  });
  return {
    counted: () => (source) =>
      defer(() => {
        open(subscriptions);
        return source.pipe(
          finalize(() => {
            subscriptions.left -= 1;
          }),
        );
      }),
    held: (object) => {
      open(objects);
      registry.register(object, undefined);
      return object;
    },
    subscriptions,
    objects,
  };
};

const open = (count: { all: number; left: number }): void => {
  count.all += 1;
  count.left += 1;
};
