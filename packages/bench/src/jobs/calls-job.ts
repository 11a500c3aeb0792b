import type { Adapter } from '../adapter.js';
import { isListOf, isNumber, isShape, isText } from '../guard.js';
import { checkedCall } from './checked-call.js';
import type { Job } from './job.js';

/** How long is gone on with calls, one after the other: until there were so many, and they took so much CPU. */
export interface Enough {
  readonly calls: number;
  readonly cpuMs: number;
}

/** Scripts that are played one after the other. */
export interface CallsOptions {
  readonly scripts: readonly string[];
  /** Before anything is measured, of each script. */
  readonly warmUp: Enough;
  readonly measured: Enough;
}

/** What one call costs on average, garbage collection and all threads included. */
export interface Cost {
  /** Calls that were measured. */
  readonly calls: number;
  readonly cpuMs: number;
  readonly wallMs: number;
}

/** Measures calls one after the other: what each costs, for each script. */
export const callsJob: Job<CallsOptions, { readonly costs: readonly Cost[] }> = {
  name: 'calls',
  isOptions: isShape({
    scripts: isListOf(isText),
    warmUp: isShape({ calls: isNumber, cpuMs: isNumber }),
    measured: isShape({ calls: isNumber, cpuMs: isNumber }),
  }),
  isResult: isShape({
    costs: isListOf(isShape({ calls: isNumber, cpuMs: isNumber, wallMs: isNumber })),
  }),
  run: async (open, { scripts, warmUp, measured }) => {
    const adapter = await open();
    const costs: Cost[] = [];
    for (const script of scripts) {
      await costOf(adapter, script, warmUp);
      costs.push(await costOf(adapter, script, measured));
    }
    return { costs };
  },
};

const costOf = async (adapter: Adapter, script: string, enough: Enough): Promise<Cost> => {
  const call = checkedCall(adapter, script);
  const startedAt = performance.now();
  const before = process.cpuUsage();
  let [calls, cpuMs] = [0, 0];
  while (calls < enough.calls || cpuMs < enough.cpuMs) {
    await call();
    calls += 1;
    const { user, system } = process.cpuUsage(before);
    cpuMs = (user + system) / 1_000;
  }
  return { calls, cpuMs: cpuMs / calls, wallMs: (performance.now() - startedAt) / calls };
};
