import { MillraceError } from 'millrace';
import type { CallStoreDriver } from 'millrace/journal';
import { having, isRecord, wholeNumber, isDelay, type Rule } from 'millrace/values';

/** A store of calls, such as `store.calls` of `@millrace/store`, or that of `createCallStore`. */
export interface TimerStore {
  readonly driver: CallStoreDriver;
}

/** Throws `config` if it is not a store of calls. */
export const driverOf = (owner: string, store: unknown): CallStoreDriver => {
  if (!isTimerStore(store)) {
    throw new MillraceError(
      'config',
      `${owner} needs a store of calls: openFiles(directory).calls, or createCallStore(driver).`,
    );
  }
  return store.driver;
};

export const isTimerStore = (store: unknown): store is TimerStore =>
  isRecord(store) &&
  ['claim$', 'read$', 'list$'].every((method) => having(method, '')[0](store['driver']));

/** Options of the loop that does what is due. */
export const loopRules = {
  pollMs: [(value) => isDelay[0](value) && Number(value) >= 100, 'at least 100 milliseconds'],
  parallel: wholeNumber(1),
  maxAttempts: wholeNumber(1),
  scheduler: having('schedule', 'an RxJS scheduler'),
} satisfies Readonly<Record<string, Rule>>;
