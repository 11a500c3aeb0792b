import type { Outcome } from './ask.js';

/** What the command exits with, by how a call ended. */
export const exitCodes: Readonly<Record<Outcome | 'failed', number>> = {
  answered: 0,
  failed: 1,
  interrupted: 130,
  stopped: 130,
  terminated: 143,
};

/** What it exits with where it was called wrongly. */
export const wrongUsage = 2;
