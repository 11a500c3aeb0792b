import { createAgent, inProcessMemory, type Memory, type Model, only } from 'millrace';
import { sessions, type Session } from 'millrace/sessions';
import { openai } from '@millrace/openai';
import { firstValueFrom } from 'rxjs';
import { outcomeOf } from '../outcome-of.js';
import type { AnswerServer } from '../server/start-answer-server.js';
import { ends, stopNames, stops } from '../stops.js';
import type { Shared } from './shared.js';
import type { Sort } from './sort.js';

/** Calls over HTTP: at one address, whose connections stay, and of a new agent at a new address for each. */
export const httpSorts = (server: AnswerServer, { ledger, options }: Shared): readonly Sort[] => {
  const memory = (id: string): Memory => ledger.held(inProcessMemory()(id));
  const sessionWith = (type: 'short' | 'drip', id: string): Session =>
    sessions(createAgent({ model: at(server.play({ type }).url) }), { memory }).open(id);
  const steady = createAgent({ model: at(server.play({ type: 'short' }).url) });
  return [
    {
      name: 'one agent',
      ends: 'answer',
      call: (id) => outcomeOf(sessions(steady, { memory }).open(id).call('Hello.', options)),
    },
    {
      name: 'an agent for each',
      ends: 'answer',
      call: (id) => outcomeOf(sessionWith('short', id).call('Hello.', options)),
    },
    ...stopNames.map((stop): Sort => ({
      name: stop,
      ends: ends[stop],
      call: async (id) => {
        const session = sessionWith('drip', id);
        const begun = firstValueFrom(session.events$.pipe(only('reasoningChunk')));
        const call = stops[stop](session, options);
        await begun;
        call.stop();
        return call.settled;
      },
    })),
  ];
};

const at = (baseURL: string): Model => openai('loopback', { apiKey: 'test', baseURL });
