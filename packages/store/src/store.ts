import type { CallStoreDriver } from '@millrace/core/journal';
import type { Observable } from 'rxjs';

/** A place where agents keep what outlasts a process. Nothing is opened before it is used. */
export interface Store {
  /** Calls: their steps and their events. */
  readonly calls: CallStoreDriver;
  /** Ends all that is open, and completes; what is used later errors with `store`. Cold. */
  close$(): Observable<unknown>;
}
