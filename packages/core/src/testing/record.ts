import { lastValueFrom, type Observable, toArray } from 'rxjs';
import type { AgentEvent } from '../events.js';
import { verifyEvents } from './verify-events.js';

/** Makes a call, and gives its events once it has completed; rejects where they break the grammar of events. */
export const record = (events$: Observable<AgentEvent>): Promise<readonly AgentEvent[]> =>
  lastValueFrom(events$.pipe(verifyEvents(), toArray()));

/** One rule of a contract. Hand `name` and `run` to the test runner of your choice. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void>;
}
