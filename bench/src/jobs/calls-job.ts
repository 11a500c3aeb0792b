import type { Adapter } from '../adapter.js';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { checkedCall } from './checked-call.js';
import type { Job } from './job.js';

/** Scripts that are played one after the other. */
export interface CallsOptions {
  readonly scripts: readonly string[];
  /** Calls of each script before those that are measured. */
  readonly warmUp: number;
  /** Calls of each script that are measured, as many for every adapter: the compiler counts calls. */
  readonly measured: number;
}

/** What one call costs on average, garbage collection and all threads included. */
export interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
  /** CPU of a call of the warm-up, the first of all among them. */
  readonly youngMs: number;
}

/** Measures calls one after the other: what each costs, for each script. */
export const callsJob: Job<CallsOptions, { readonly costs: readonly Cost[] }> = {
  name: 'calls',
  isOptions: isShape({
    scripts: isListOf(isText),
    warmUp: isNumber,
    measured: isNumber,
  }),
  isResult: isShape({
    costs: isListOf(isShape({ cpuMs: isNumber, wallMs: isNumber, youngMs: isNumber })),
  }),
  run: async (open, { scripts, warmUp, measured }) => {
    const adapter = await open();
    const costs: Cost[] = [];
    for (const script of scripts) {
      const young = await costOf(adapter, script, warmUp);
      costs.push({ ...(await costOf(adapter, script, measured)), youngMs: young.cpuMs });
    }
    return { costs };
  },
};

const costOf = async (
  adapter: Adapter,
  script: string,
  calls: number,
): Promise<Omit<Cost, 'youngMs'>> => {
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
