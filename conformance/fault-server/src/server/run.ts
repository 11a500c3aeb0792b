import type { ResponseScript, Scenario, SeenRequest } from '../scenario.js';
import type { Visit } from './visit.js';

/** A scenario that is on, and the requests it has had. */
export interface Run {
  readonly scenario: Scenario;
  /** What to say to the request that comes next. */
  next(): ResponseScript;
  /** Takes a request in. */
  add(visit: Visit): void;
  /** The requests so far, oldest first. */
  seen(): readonly SeenRequest[];
  /** Resolves when the request at an index has come. */
  arrived(index: number): Promise<unknown>;
  /** Resolves when the request at an index has come and is over; without one, when all that have come are over. */
  closed(index?: number): Promise<unknown>;
}

/** Begins a scenario. */
export const createRun = (scenario: Scenario): Run => {
  const { responses } = scenario;
  const visits: Visit[] = [];
  const waiting = new Map<number, ((visit: Visit) => void)[]>();

  const at = (index: number): Promise<Visit> =>
    new Promise((resolve) => {
      const visit = visits[index];
      if (visit === undefined) waiting.set(index, [...(waiting.get(index) ?? []), resolve]);
      else resolve(visit);
    });
  return {
    scenario,
    next: () => responses[visits.length] ?? responses.at(-1) ?? [],
    add: (visit) => {
      const index = visits.push(visit) - 1;
      waiting.get(index)?.forEach((resolve) => resolve(visit));
    },
    seen: () => visits.map((visit) => visit.seen()),
    arrived: at,
    closed: (index) =>
      index === undefined
        ? Promise.all(visits.map((visit) => visit.closed))
        : at(index).then((visit) => visit.closed),
  };
};
