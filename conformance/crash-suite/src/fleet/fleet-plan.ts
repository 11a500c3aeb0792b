import { type Message, textOf } from 'millrace';
import { type Plan, planOf, signedPlanOf } from '../script/plan.js';
import type { UncertainMode } from '../script/script-agent.js';
import { type Seeded, seeded } from '../seeded.js';

export const modes: readonly UncertainMode[] = ['report', 'rerun', 'ask'];

/** The agent whose uncertain tool calls are treated in this way. */
export const agentOf = (mode: UncertainMode): string => `script-${mode}`;

/** A call that the driver starts, and its actions on it. */
export interface FleetCall {
  readonly callId: string;
  readonly mode: UncertainMode;
  readonly seed: number;
  readonly sessionId?: string;
  readonly delayMs?: number;
  /** A tool suspends it, and the driver answers. */
  readonly isSigned: boolean;
  /** Its refund gets no decision: the driver interrupts it, after this number of events or when it asks for the approval. */
  readonly interrupt?: number | 'asked';
  /** It is steered after this number of events, or when it asks for the approval: then a request must follow. */
  readonly steers: readonly (number | 'asked')[];
}

/** Calls that are started together, once those before have ended. */
export interface Burst {
  /** Not before this time, in milliseconds from the start of the run. */
  readonly atMs: number;
  readonly calls: readonly FleetCall[];
}

/** The calls of one session, or one call without a session. */
export interface Line {
  readonly sessionId?: string;
  readonly bursts: readonly Burst[];
}

export interface LinesOptions {
  readonly seed: number;
  readonly calls: number;
  /** Starts are spread over this time, in milliseconds. */
  readonly spreadMs: number;
}

const callsPerSession = 5;

/** The lines of a seed: about a tenth of the calls has no session. */
export const linesOf = ({ seed, calls, spreadMs }: LinesOptions): readonly Line[] => {
  const random = seeded(seed);
  const alone = Math.floor(calls / 10);
  const sessions = Math.max(1, Math.round((calls - alone) / callsPerSession));
  let count = 0;
  const id = (): string => {
    count += 1;
    return `f${count}`;
  };
  const lonely = Array.from({ length: alone }, (_, index): Line => {
    const call = callOf(id(), index, random);
    return { bursts: [{ atMs: random.below(spreadMs), calls: [call] }] };
  });
  const talking = Array.from({ length: sessions }, (_, index): Line => {
    const own = Math.floor(((index + 1) * (calls - alone)) / sessions);
    const before = Math.floor((index * (calls - alone)) / sessions);
    const sessionId = `s${index + 1}`;
    const all = Array.from({ length: own - before }, () => callOf(id(), index, random, sessionId));
    return { sessionId, bursts: burstsOf(all, spreadMs, random) };
  });
  return [...lonely, ...talking];
};

const callOf = (callId: string, nth: number, random: Seeded, sessionId?: string): FleetCall => {
  const isInterrupted = random.below(8) === 0;
  const isSigned = random.below(6) === 0 && !isInterrupted && sessionId !== undefined;
  const isSteered = random.below(3) === 0 && sessionId !== undefined;
  const isDelayed = random.below(8) === 0;
  const at = (): number | 'asked' => (random.below(2) === 0 ? 'asked' : 1 + random.below(50));
  return {
    callId,
    mode: modes[nth % modes.length] ?? 'report',
    seed: random.below(2 ** 31),
    isSigned,
    steers: isSteered ? Array.from({ length: 1 + random.below(2) }, at) : [],
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(isDelayed ? { delayMs: 100 + random.below(500) } : {}),
    ...(isInterrupted ? { interrupt: at() } : {}),
  };
};

/** A delayed call is alone: those that are started after it do not wait for it. */
const burstsOf = (
  calls: readonly FleetCall[],
  spreadMs: number,
  random: Seeded,
): readonly Burst[] => {
  const groups: (readonly FleetCall[])[] = [];
  for (const call of calls) {
    const last = groups.at(-1);
    const before = last?.at(-1);
    const joins =
      random.below(3) > 0 && before?.delayMs === undefined && call.delayMs === undefined;
    if (last !== undefined && joins) groups[groups.length - 1] = [...last, call];
    else groups.push([call]);
  }
  const times = groups.map(() => random.below(spreadMs)).toSorted((a, b) => a - b);
  return groups.map((group, index) => ({ atMs: times[index] ?? 0, calls: group }));
};

export const fleetPlanOf = ({ seed, isSigned }: Pick<FleetCall, 'seed' | 'isSigned'>): Plan =>
  isSigned ? signedPlanOf(seed) : planOf(seed);

/** The task of a call of the fleet: any worker reads its plan from it. */
export const fleetTaskOf = ({ callId, seed, isSigned }: FleetCall): string =>
  `Do what the script of the seed ${seed} says${isSigned ? ', and have it signed' : ''} (${callId}).`;

/** A task with one batch of three tools, each of which needs an approval: they start in the order of the decisions. */
export const tripleTask = 'Refund three times.';

export const triplePlan: Plan = [['1.0', '1.1', '1.2'].map((item) => ({ tool: 'refund', item }))];

/** The plan of a call, by its first message. */
export const planForTask = ([task]: readonly Message[]): Plan => {
  const words = task === undefined ? '' : textOf(task);
  if (words === tripleTask) return triplePlan;
  const seed = /seed (\d+)/u.exec(words)?.[1];
  if (seed === undefined) throw new Error(`This is no task of the fleet: '${words}'.`);
  return fleetPlanOf({ seed: Number(seed), isSigned: words.includes('signed') });
};
