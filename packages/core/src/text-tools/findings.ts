import type { Repair } from '../json-text/read-json.js';
import type { Ask, Problem, Reading } from './reading.js';

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
