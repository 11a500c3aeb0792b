// Stands in the place of packages/millrace/src/seams/read-use.ts where a suite runs with layers: adds one to every agent.
import { concatMap, delay, timer } from 'rxjs';
import { readUse as read } from '../../packages/millrace/src/seams/read-use.ts';

export * from '../../packages/millrace/src/seams/read-use.ts';

const kinds = {
  /** Passes everything on. */
  pass: {
    name: 'pass',
    call: () => (next) => (call) => next(call),
    step: () => (next) => (step) => next(step),
    model: () => (next) => next,
    turn: (phases) => phases,
  },
  /** Passes everything on, later. */
  async: {
    name: 'async',
    call:
      ({ scheduler }) =>
      (next) =>
      (call) =>
        timer(0, scheduler).pipe(concatMap(() => next(call))),
    step:
      ({ scheduler }) =>
      (next) =>
      (step) =>
        next(step).pipe(delay(0, scheduler)),
  },
};

// Jest sets it: see `globals` in jest.config.ts.
const layer = kinds[globalThis.MILLRACE_LAYER];

export const readUse = (owner, use) =>
  owner === 'The call' ? read(owner, use) : [layer, ...read(owner, use)];
