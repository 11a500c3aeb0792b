import type { Repair } from '../../values/read-json.js';

interface Ask {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

interface Problem {
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

export interface Fault extends Problem {
  readonly text: string;
}

export interface Findings {
  readonly asks: Ask[];
  readonly repairs: Repair[];
  /** The first action that could not be read, with none before it that could. */
  fault: Fault | undefined;
  passedOver: number;
  conflict: string | undefined;
  /** The tool of an action within prose that could be run: the prose is no answer. */
  mention: string | undefined;
  answer: string[] | undefined;
  readonly prose: string[];
  /** What of it has been said as a thought, in case that an action follows. */
  readonly unsaid: string[];
  hasThought: boolean;
  /** Prose without a mark stood before the first label of an action: the whole may have been meant as an answer. */
  hasLead: boolean;
}

export const createFindings = (): Findings => ({
  asks: [],
  repairs: [],
  fault: undefined,
  passedOver: 0,
  conflict: undefined,
  mention: undefined,
  answer: undefined,
  prose: [],
  unsaid: [],
  hasThought: false,
  hasLead: false,
});

/** Forgets all but what has been said: it turns out to be a thought. */
export const forget = (findings: Findings): void => {
  Object.assign(findings, createFindings(), { hasThought: true });
};

export const amongText =
  'It has an action among other text, so that the action may be an example. Write the action alone, or your answer in its own form.';

export const hasActed = ({ asks, fault }: Findings): boolean =>
  asks.length > 0 || fault !== undefined;

export const addFault = (findings: Findings, problem: Problem, text: string): void => {
  if (findings.asks.length > 0) findings.passedOver += 1;
  else findings.fault ??= { ...problem, text };
};

export const spoil = (findings: Findings, { asks, answer }: Reading, text: string): void => {
  const what =
    'The JSON ends before the text does: write one object, and escape quotes within a text.';
  findings.asks.splice(findings.asks.length - asks.length, asks.length);
  if (asks.length > 0) addFault(findings, { what, tool: asks[0]?.name ?? '' }, text);
  else if (answer !== undefined) findings.conflict ??= what;
};
