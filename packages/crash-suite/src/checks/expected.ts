import { inProcessMemory, type Message } from '@millrace/core';
import { lastValueFrom, of } from 'rxjs';
import type { ErrandCall } from '../life/said.js';
import { scriptAgent, sessionIdOf, task } from '../script/script-agent.js';

/** The conversation of a call that nothing has broken off. */
export const expectedMemory = async ({
  callId,
  ...call
}: ErrandCall): Promise<readonly Message[]> => {
  const memory = inProcessMemory();
  const agent = scriptAgent({
    ...call,
    memory,
    pace: { chunkMs: 0, onChunk: () => undefined },
    effect$: () => of(undefined),
  });
  await agent.session(sessionIdOf(callId)).call(task, { callId });
  return lastValueFrom(memory(sessionIdOf(callId)).load$());
};
