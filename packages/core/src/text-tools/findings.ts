import type { Repair } from '../json-text/read-json.js';
import type { Ask, Problem, Reading } from './reading.js';

export interface Fault extends Problem {
  /** What the model wrote there. */
  readonly text: string;
}

export interface Findings {
  readonly asks: Ask[];
  readonly repairs: Repair[];
  /** The first action that could not be read, with none before it that could. */
  fault: Fault | undefined;
  /** Faults behind an action that could be read. */
  passedOver: number;
  /** Why the reply has two readings. */
  conflict: string | undefined;
  /** The answer that is marked as one, in pieces. */
  answer: string[] | undefined;
  /** What nothing marks as a thought or an answer, in pieces. */
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
  answer: undefined,
  prose: [],
  unsaid: [],
  hasThought: false,
  hasLead: false,
});

/** Forgets all but what has been said: it turns out to be a thought. */
export const forget = (findings: Findings): void => {
  const { asks, repairs, prose, unsaid } = findings;
  for (const list of [asks, repairs, prose, unsaid]) list.length = 0;
  findings.fault = undefined;
  findings.passedOver = 0;
  findings.conflict = undefined;
  findings.answer = undefined;
  findings.hasThought = true;
  findings.hasLead = false;
};

export const hasActed = ({ asks, fault }: Findings): boolean =>
  asks.length > 0 || fault !== undefined;

/** Notes an action that cannot be read. */
export const addFault = (findings: Findings, problem: Problem, text: string): void => {
  if (findings.asks.length > 0) findings.passedOver += 1;
  else findings.fault ??= { ...problem, text };
};

/** Notes that the last action cannot be what the model meant. */
export const spoil = (findings: Findings, { asks, answer }: Reading, text: string): void => {
  const what =
    'The JSON ends before the text does: write one object, and escape quotes within a text.';
  findings.asks.splice(findings.asks.length - asks.length, asks.length);
  if (asks.length > 0) addFault(findings, { what, tool: asks[0]?.name ?? '' }, text);
  else if (answer !== undefined) findings.conflict ??= what;
};
