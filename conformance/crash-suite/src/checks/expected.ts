import { inProcessMemory, type Message } from '@millrace/core';
import { sessions } from '@millrace/core/sessions';
import { lastValueFrom, of } from 'rxjs';
import type { ErrandCall } from '../life/said.js';
import { planOf } from '../script/plan.js';
import { scriptAgent, sessionIdOf, taskOf } from '../script/script-agent.js';

/** The conversation of a call that nothing has broken off. */
export const expectedMemory = async ({ callId, seed }: ErrandCall): Promise<readonly Message[]> => {
  const memory = inProcessMemory();
  const agent = scriptAgent({
    plan: planOf(seed),
    pace: { chunkMs: 0, onAsk: () => undefined, onChunk: () => undefined },
    approval$: () => of(true),
    effect$: () => of(undefined),
  });
  await sessions(agent, { memory }).open(sessionIdOf(callId)).call(taskOf(seed), { callId });
  return lastValueFrom(memory(sessionIdOf(callId)).load$());
};
