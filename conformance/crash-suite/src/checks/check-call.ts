import type { Message } from 'millrace';
import type { Arrival } from '../effects/effect-server.js';
import type { ErrandCall, Outcome, Uncertainty } from '../life/said.js';
import { effectsOf, type Plan } from '../script/plan.js';
import { isHint } from '../script/script-model.js';
import { faultsIn, isAnswered, linesOf } from './conversation.js';
import { faultsInLog, keysDone } from './log.js';

/** All that is known of a call that has ended. */
export interface Evidence {
  readonly call: ErrandCall;
  readonly plan: Plan;
  readonly outcome: Outcome;
  /** Of the same call, where nothing has broken it off. */
  readonly expected: readonly Message[];
  readonly uncertain: readonly Uncertainty[];
  /** Items with results that were supplied by hand, which an undisturbed run does not have. Default: none. */
  readonly brought?: readonly string[];
  readonly arrivals: readonly Arrival[];
  /** What it has asked or run after it was written down that it is interrupted. */
  readonly after: readonly string[];
}

/** What came of one call. */
export interface Verdict {
  /** Whether its session is kept. */
  readonly isKept: boolean;
  /** Effects that were done. */
  readonly effects: number;
  /** Effects that are told as done, or had to be done, and were not. */
  readonly lost: readonly string[];
  /** Effects that were done again, and nobody has said so. */
  readonly doubled: readonly string[];
  readonly uncertain: number;
  /** Whether somebody has ended it. */
  readonly isInterrupted: boolean;
  /** What it has asked or run after that was written down. */
  readonly after: readonly string[];
  /** What else is not as it must be. */
  readonly wrongs: readonly string[];
}

/** Holds what is left of a call against what a whole run gives. */
export const checkCall = (evidence: Evidence): Verdict => {
  const { outcome, expected, uncertain, brought = [], arrivals, after } = evidence;
  // What was run again is as good as never broken off.
  const open = new Set(uncertain.filter(({ then }) => then !== 'rerun').map(({ item }) => item));
  const { memory, records } = outcome;
  const isInterrupted = isEndedBySomebody(evidence);
  return {
    isKept: evidence.call.isKept === true,
    effects: new Set(arrivals.map(({ key }) => key)).size,
    lost: lostIn(evidence, open),
    doubled: doubledIn(evidence),
    uncertain: uncertain.length,
    isInterrupted,
    after,
    wrongs: [
      ...faultsIn(memory),
      ...records.flatMap(faultsInLog),
      ...faultsInHints(outcome),
      ...outcome.open.map((callId) => `${callId} is still open`),
      ...(isInterrupted ? [] : faultsInAnswer(outcome, expected, new Set([...open, ...brought]))),
    ],
  };
};

/** One that somebody would have interrupted may be at its end before. */
const isEndedBySomebody = ({ call, outcome }: Evidence): boolean =>
  call.interruptAt !== undefined && outcome.replies.at(-1)?.reason === 'interrupted';

const faultsInAnswer = (
  { memory, replies }: Outcome,
  expected: readonly Message[],
  open: ReadonlySet<string>,
): readonly string[] => {
  const [is, must] = [linesOf(memory, open), linesOf(expected, open)];
  return [
    ...(replies.at(-1)?.reason === 'answer' ? [] : ['there is no answer']),
    ...(isAnswered(memory) ? [] : ['the answer is not what the tools have said']),
    ...(is.join('\n') === must.join('\n')
      ? []
      : [`the conversation is\n${is.join('\n')}\nand not\n${must.join('\n')}`]),
  ];
};

/** What a call is told to have heard stands in the conversation, once. */
const faultsInHints = ({ memory, records }: Outcome): readonly string[] => {
  const told = records.flat().filter(({ kind, name }) => kind === 'event' && name === 'steered');
  const kept = memory.filter(isHint);
  return kept.length === told.length
    ? []
    : [`it has heard ${told.length} hints, and ${kept.length} are in the conversation`];
};

const lostIn = (evidence: Evidence, open: ReadonlySet<string>): readonly string[] => {
  const { plan, outcome, arrivals } = evidence;
  const keys = new Set(arrivals.map(({ key }) => key));
  const items = new Set(arrivals.map(({ item }) => item));
  const planned = isEndedBySomebody(evidence) ? [] : effectsOf(plan);
  const due = planned.filter(({ item, outermost }) => !open.has(item) && !open.has(outermost));
  return [
    ...outcome.records.flatMap(keysDone).filter((key) => !keys.has(key)),
    ...due.filter(({ item }) => !items.has(item)).map(({ item }) => item),
  ];
};

const doubledIn = ({ call, uncertain, arrivals }: Evidence): readonly string[] => {
  const keys = [...new Set(arrivals.map(({ key }) => key))];
  const again = keys.filter((key) => {
    const own = arrivals.filter((it) => it.key === key);
    const reruns = uncertain.filter((it) => it.key === key && it.then === 'rerun').length;
    const mayRunAgain = own[0]?.isIdempotent === true || call.mode === 'rerun';
    const seeds = new Set(own.map(({ seed }) => seed));
    return own.length - 1 > (mayRunAgain ? reruns : 0) || seeds.size > 1;
  });
  const items = keys.map((key) => arrivals.find((it) => it.key === key)?.item ?? key);
  // Under another key a service does it once more.
  return [...again, ...items.filter((item, index) => items.indexOf(item) !== index)];
};
