import type { Outcome } from './ask.js';

export const exitCodes: Readonly<Record<Outcome | 'failed', number>> = {
  answered: 0,
  failed: 1,
  interrupted: 130,
  stopped: 130,
  terminated: 143,
};

export const wrongUsage = 2;
