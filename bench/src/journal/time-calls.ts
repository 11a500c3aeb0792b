import type { Agent } from 'millrace';
import { lastValueFrom } from 'rxjs';
import { question } from '../lookup.js';

/** What calls took, for each. */
export interface CallTime {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** Makes so many calls, some of them side by side, under ids that begin with a name, and tells what one took. */
export const timeCalls = async (
  agent: Agent,
  name: string,
  calls: number,
  sideBySide = 1,
): Promise<CallTime> => {
  let begun = 0;
  const one = async (): Promise<void> => {
    while (begun < calls) {
      begun += 1;
      const call$ = agent.call$(question, { callId: `${name}-${begun}` });
      const { reason } = await lastValueFrom(call$);
      if (reason !== 'answer') throw new Error(`A call has ended as '${reason}'.`);
    }
  };
  const startedAt = performance.now();
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: sideBySide }, one));
  const { user, system } = process.cpuUsage(before);
  return {
    wallMs: (performance.now() - startedAt) / calls,
    cpuMs: (user + system) / 1_000 / calls,
  };
};
