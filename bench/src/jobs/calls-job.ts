import type { Adapter } from '../adapter.js';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { checkedCall } from './checked-call.js';
import type { Job } from './job.js';

/** How many calls of a script a process makes, in this order: as many for every adapter, because the compiler counts calls. */
export interface Calls {
  /** Calls before the young ones: they load, connect and compile what a call needs first. */
  readonly before: number;
  /** Calls that are measured while the compiler is still working. */
  readonly young: number;
  /** Calls after the young ones, before the old ones. */
  readonly between: number;
  /** Calls that are measured after the warm-up. */
  readonly old: number;
}

/** Scripts that are played one after the other. */
export interface CallsOptions extends Calls {
  readonly scripts: readonly string[];
}

/** The cost of one call on average, including garbage collection and all threads. */
export interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** The cost of a call in a young process and in an old one. */
export interface Costs {
  readonly young: Cost;
  readonly old: Cost;
}

const isCost = isShape<Cost>({ cpuMs: isNumber, wallMs: isNumber });

export const isCosts = isShape<Costs>({ young: isCost, old: isCost });

const callFields = { before: isNumber, young: isNumber, between: isNumber, old: isNumber };

export const isCalls = isShape<Calls>(callFields);

/** Measures calls one after the other: the cost of each, for each script. */
export const callsJob: Job<CallsOptions, { readonly costs: readonly Costs[] }> = {
  name: 'calls',
  isOptions: isShape({ scripts: isListOf(isText), ...callFields }),
  isResult: isShape({ costs: isListOf(isCosts) }),
  run: async (open, { scripts, ...calls }) => {
    const adapter = await open();
    const costs: Costs[] = [];
    for (const script of scripts) costs.push(await costsOf(adapter, script, calls));
    return { costs };
  },
};

const costsOf = async (adapter: Adapter, script: string, calls: Calls): Promise<Costs> => {
  await costOf(adapter, script, calls.before);
  const young = await costOf(adapter, script, calls.young);
  await costOf(adapter, script, calls.between);
  return { young, old: await costOf(adapter, script, calls.old) };
};

const costOf = async (adapter: Adapter, script: string, calls: number): Promise<Cost> => {
  const call = checkedCall(adapter, script);
  const startedAt = performance.now();
  const before = process.cpuUsage();
  for (let made = 0; made < calls; made += 1) await call();
  const { user, system } = process.cpuUsage(before);
  return {
    cpuMs: (user + system) / 1_000 / calls,
    wallMs: (performance.now() - startedAt) / calls,
  };
};
