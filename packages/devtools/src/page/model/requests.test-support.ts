// The log of a real call, as the server sends it and a page reads it.
import { type Agent, type AgentEvent, createAgent, on, tool } from 'millrace';
import { finish, scriptedModel, text, toolCall } from 'millrace/testing';
import { catchError, EMPTY, map, type Observable, throwError } from 'rxjs';
import { createCallLog } from '../../call-log.js';
import type { LogItem } from '../protocol.js';

/** What the feed has of a call. */
export const feedOf = (events: readonly AgentEvent[]): readonly LogItem[] => {
  const log = createCallLog('c');
  for (const event of events) log.add(event);
  return JSON.parse(JSON.stringify(log.slice(0, Infinity)));
};

/** The events of a call whose model does not wait. */
export const eventsOf = (event$: Observable<AgentEvent>): readonly AgentEvent[] => {
  const events: AgentEvent[] = [];
  event$.pipe(catchError(() => EMPTY)).subscribe((event) => events.push(event));
  return events;
};

/** A key that is none. */
export const key = `sk-${'test'.repeat(6)}`;

/** Asks for the weather in turn 1, and answers in turn 2, whose prompt an interceptor edits. The tool `tickets` fails. */
export const forecaster = (): Agent =>
  createAgent({
    name: 'Guide',
    instructions: `You plan journeys. It's the key ${key}.`,
    model: scriptedModel(
      [toolCall('weather', { city: 'Flåm' }, 'w'), toolCall('tickets', {}, 't'), finish()],
      [text('Take the boat.'), finish()],
    ),
    tools: [
      tool({ name: 'weather', description: 'Tells the weather.', run: () => 'Dry.' }),
      tool({
        name: 'tickets',
        description: 'Sells tickets.',
        run: () =>
          throwError(
            () =>
              new Error(`The counter is closed. authorization: Bearer ${key}`, {
                cause: new TypeError('The socket has ended.', { cause: { headers: { key } } }),
              }),
          ),
      }),
    ],
    use: [
      on(
        'preReasoning',
        map((event) =>
          event.iteration === 1
            ? event
            : { ...event, options: { ...event.options, system: 'Answer in one sentence.' } },
        ),
      ),
    ],
  });
