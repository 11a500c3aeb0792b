import {
  defaultIfEmpty,
  defer,
  EMPTY,
  map,
  mergeMap,
  type Observable,
  take,
  throwError,
} from 'rxjs';
import { MillraceError, misuse } from '../errors.js';
import { failAs } from '../fail-as.js';
import { isRecord } from '../json.js';
import type { CallStoreDriver } from './call-store-driver.js';

/** A store of calls, as far as those who read it need it: of `createCallStore`. */
export interface StoreOfCalls {
  readonly driver: CallStoreDriver;
}

/** Tells whether it is such a store. */
export const isStoreOfCalls = (value: unknown): value is StoreOfCalls =>
  isRecord(value) && isRecord(value['driver']);

/** Refuses what is no store, and what cannot be the id of a call. */
export const checkStored = (owner: string, store: unknown, callId: unknown = 'any'): void => {
  if (!isStoreOfCalls(store)) {
    throw misuse(`${owner} needs a store of calls: createCallStore(driver).`);
  }
  if (typeof callId !== 'string' || callId === '') throw misuse(`${owner} needs the id of a call.`);
};

/** Emits whether anything is written down of a call. */
export const isStored$ = (driver: CallStoreDriver, callId: string): Observable<boolean> =>
  defer(() => driver.read$(callId)).pipe(
    failAs('store', 'The journal could not be read'),
    take(1),
    map(({ length }) => length > 0),
    defaultIfEmpty(false),
  );

/** Completes where something is written down of a call, and errors with `invalidResume` where nothing is. */
export const assertStored$ = (driver: CallStoreDriver, callId: string): Observable<never> =>
  isStored$(driver, callId).pipe(
    mergeMap((isStored) => (isStored ? EMPTY : throwError(() => notStored(callId)))),
  );

/** The error of who asks for a call of which nothing is written down. */
export const notStored = (callId: string): MillraceError =>
  new MillraceError(
    'invalidResume',
    `There is no call '${callId}' in the store. calls$(store) tells which there are.`,
  );
