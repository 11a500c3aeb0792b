// A call and its fork, as the journal makes them.
import { type AgentEvent, createAgent, tool } from 'millrace';
import { createCallStore, fork$, inProcessCalls, journal, otherResult } from 'millrace/journal';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, type Observable, tap } from 'rxjs';
import { otherText } from '../../source.js';
import type { LogItem, Mark } from '../protocol.js';
import { inspecting, toItems } from './runs.test-support.js';

export interface Forked {
  readonly original: readonly LogItem[];
  readonly fork: readonly LogItem[];
}

/** Forks the call `c` at a step, as the call `f`. With a weather, the first result is another one; with a message, the text of the first one. */
export const forked = async (
  at: string,
  weather?: string,
  marks = false,
  message?: string,
): Promise<Forked> => {
  let log: (AgentEvent | Mark)[] = [];
  const logged = async (event$: Observable<AgentEvent>): Promise<readonly LogItem[]> => {
    log = [];
    await lastValueFrom(event$.pipe(tap((event) => log.push(event))));
    return toItems(log);
  };
  const store = createCallStore(inProcessCalls());
  const layer = journal(store);
  const asks = [toolCall('weather', { city: 'Flåm' }, 'w'), toolCall('ferry', {}, 'f')];
  const answers = [
    asks,
    [text('Take the boat, it stays dry.')],
    ...(at === '1' ? [asks] : []),
    [text('Take the train, it rains.')],
  ];
  let runs = 0;
  const agent = createAgent({
    name: 'Guide',
    model: scriptedModel(...answers),
    tools: [
      tool({ name: 'weather', description: 'Tells the weather.', run: () => 'Dry.' }),
      tool({
        name: 'ferry',
        description: 'Finds ferries.',
        run: () => ((runs += 1) === 1 ? 'At 08:10.' : 'None today.'),
      }),
    ],
    use: [layer, ...(marks ? [inspecting((mark) => log.push(mark))] : [])],
  });
  const original = await logged(agent.stream$('Boat or train?', { callId: 'c' }));
  const edits = {
    ...(weather !== undefined && { '1/0': otherResult(weather) }),
    ...(message !== undefined && { '1': otherText(message) }),
  };
  await firstValueFrom(fork$(store, 'c', { at, callId: 'f', edit: edits }));
  return { original, fork: await logged(layer.resumeStream$(agent, 'f')) };
};
