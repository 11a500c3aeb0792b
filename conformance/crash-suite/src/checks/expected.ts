import { inProcessMemory, type Message } from 'millrace';
import { sessions } from 'millrace/sessions';
import { lastValueFrom, of } from 'rxjs';
import type { Plan } from '../script/plan.js';
import { scriptAgent, sessionIdOf } from '../script/script-agent.js';

export interface ExpectedCall {
  readonly callId: string;
  readonly task: string;
  readonly plan: Plan;
}

/** The conversation of a call that nothing has broken off. */
export const expectedMemory = async ({
  callId,
  task,
  plan,
}: ExpectedCall): Promise<readonly Message[]> => {
  const memory = inProcessMemory();
  const agent = scriptAgent({
    planFor: () => plan,
    suspends: false,
    pace: { chunkMs: 0, onAsk: () => undefined, onChunk: () => undefined },
    approve: () => true,
    effect$: () => of(undefined),
  });
  await sessions(agent, { memory }).open(sessionIdOf(callId)).call(task, { callId });
  return lastValueFrom(memory(sessionIdOf(callId)).load$());
};
