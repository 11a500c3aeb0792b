import { isNumber, isFlag, isShape } from '../guard.js';
import { now } from '../one-clock.js';

/** An answer of the model, as the question asks for it. */
export interface Plan {
  readonly deltas: number;
  /** Characters of a delta. */
  readonly size: number;
  /** Deltas that come together. */
  readonly burst: number;
  /** Between two bursts, in milliseconds. 0: in the next turn of the event loop. */
  readonly everyMs: number;
  /** Before the first delta, in milliseconds. */
  readonly silentMs: number;
  /** Whether each delta begins with the time of its emission. */
  readonly isStamped: boolean;
}

/** As fast as the server takes them, in the sizes of a provider. */
export const fastPlan: Plan = {
  deltas: 20,
  size: 5,
  burst: 64,
  everyMs: 0,
  silentMs: 0,
  isStamped: false,
};

const isPlan = isShape<Plan>({
  deltas: isNumber,
  size: isNumber,
  burst: isNumber,
  everyMs: isNumber,
  silentMs: isNumber,
  isStamped: isFlag,
});

/** Reads the plan that a question is. */
export const readPlan = (question: string): Plan => {
  const plan: unknown = JSON.parse(question);
  if (!isPlan(plan)) throw new Error(`'${question}' is no plan.`);
  return plan;
};

/** A delta of a plan: a word, or the time and filler. */
export const deltaOf = ({ size, isStamped }: Plan): string =>
  isStamped ? `@${now().toFixed(3)}@`.padEnd(size, 'x') : ' word'.padEnd(size, 'x');

/** The times of emission in some text of a stream. */
export const stampsIn = (text: string): readonly number[] =>
  [...text.matchAll(/@(\d+\.\d{3})@/gu)].map(([, time]) => Number(time));
