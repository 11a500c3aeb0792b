import { type CallOptions, createDemand, interruptOn } from 'millrace';
import { getEventListeners } from 'node:events';
import { NEVER } from 'rxjs';
import { createLedger, type Ledger } from './ledger.js';

/** What all calls of a mix share, as the calls of an application do: each could leave something behind at it. */
export interface Shared {
  readonly ledger: Ledger;
  /** A signal that never aborts, an interrupt that never comes, a demand, and time-outs that are never reached. */
  readonly options: CallOptions & { readonly signal: AbortSignal };
  /** Listeners at the signal. */
  readonly listeners: () => number;
}

/** Makes what the calls of a mix share. */
export const createShared = (): Shared => {
  const ledger = createLedger();
  const { signal } = new AbortController();
  const gate = createDemand();
  return {
    ledger,
    options: {
      signal,
      use: [interruptOn(NEVER.pipe(ledger.counted()))],
      demand: { isOpen: true, open$: gate.open$.pipe(ledger.counted()) },
      limits: {
        timeouts: {
          callMs: 600_000,
          iterationMs: 600_000,
          firstChunkMs: 600_000,
          chunkMs: 600_000,
          toolMs: 600_000,
        },
      },
    },
    listeners: () => getEventListeners(signal, 'abort').length,
  };
};
