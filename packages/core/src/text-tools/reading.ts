import type { Repair } from '../json-text/read-json.js';

export interface Ask {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface Problem {
  readonly what: string;
  readonly tool?: string;
}

export interface Reading {
  readonly asks: readonly Ask[];
  readonly repairs: readonly Repair[];
  readonly thought?: string;
  readonly answer?: string;
  readonly problem?: Problem;
  /** It is what an answer may hold as well as an action: one that only names a tool among other things. */
  readonly isData?: boolean;
}

export const nothing: Reading = { asks: [], repairs: [] };

export const unreadable = (what: string, tool?: string): Reading => ({
  ...nothing,
  problem: { what, ...(tool === undefined ? {} : { tool }) },
});

export const joined = (readings: readonly Reading[]): Reading => {
  const problem = readings.find((reading) => reading.problem !== undefined)?.problem;
  const answers = new Set(readings.flatMap(({ answer }) => answer ?? []));
  const thoughts = readings.flatMap(({ thought }) => thought ?? []);
  const [answer, other] = answers;
  if (other !== undefined) return unreadable('It has two different answers.');
  return {
    asks: readings.flatMap(({ asks }) => asks),
    repairs: readings.flatMap(({ repairs }) => repairs),
    ...(thoughts.length === 0 ? {} : { thought: thoughts.join('\n\n') }),
    ...(answer === undefined ? {} : { answer }),
    ...(problem === undefined ? {} : { problem }),
    ...(readings.some(({ isData }) => isData) ? { isData: true } : {}),
  };
};

export const repairedFrom = (before: string, after: string, reading: Reading): Reading =>
  reading.problem === undefined
    ? { ...reading, repairs: [{ before, after }, ...reading.repairs] }
    : reading;
