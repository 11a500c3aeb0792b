import { type Agent, createAgent, type ModelChunk, on, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { sessions } from 'millrace/sessions';
import { agentTool } from 'millrace/teams';
import { finish, scriptedModel, thinking, toolCall } from 'millrace/testing';
import { concat, concatMap, delay, from, map, type Observable, of, timer } from 'rxjs';

/** Chunks with pauses between them, in milliseconds. */
const paced = (ms: number, ...chunks: readonly ModelChunk[]): Observable<ModelChunk> =>
  from([...chunks, finish()]).pipe(concatMap((chunk) => of(chunk).pipe(delay(ms))));

const words = (sentence: string): readonly ModelChunk[] =>
  sentence.split(/(?<= )/u).map((text) => ({ type: 'text', text }));

const city = jsonSchema({
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
});

/** A tool that takes its time, and reports its progress. */
const slowTool = (name: string, ms: number, answer: string) =>
  tool({
    name,
    description: `Looks up: ${name}.`,
    input: city,
    run: () =>
      concat(
        timer(ms / 2).pipe(map(() => ({ progress: 0.5 }))),
        timer(ms / 2).pipe(map(() => answer)),
      ),
  });

/** A travel agent with parallel tools, a sub-agent, and an interceptor that takes a while. */
export const travelAgent = (pace = 8): Agent => {
  const historian = createAgent({
    name: 'historian',
    model: scriptedModel(paced(pace, ...words('The mill of Flåm was built in 1870.'))),
  });
  const model = scriptedModel(
    paced(
      pace,
      thinking('I need the weather, '),
      thinking('the ferry, and some history.'),
      toolCall('weather', { city: 'Flåm' }, 'w'),
      toolCall('ferry', { city: 'Flåm' }, 'f'),
      toolCall(
        'historian',
        { reasoning: 'history', user_prompt: 'Since when is there a mill?' },
        'h',
      ),
    ),
    paced(pace, ...words('Take the ferry at nine, '), toolCall('weather', { city: 'Bergen' }, 'b')),
    paced(pace, ...words('It is sunny in Flåm and it rains in Bergen. The ferry leaves at nine.')),
    // For a fork.
    paced(pace, ...words('The ferry leaves at a quarter to twelve.')),
  );
  return createAgent({
    name: 'guide',
    model,
    tools: [
      slowTool('weather', 60, 'Sunny, 21 °C.'),
      slowTool('ferry', 120, 'At 9:00.'),
      agentTool(historian, { description: 'Knows the history of places.' }),
    ],
    use: [on('preActing', delay(40), { name: 'think twice' })],
  });
};

/** Asks in a session that can be steered. */
export const steered = (agent: Agent, callId: string) => {
  const session = sessions(agent).open('trip');
  return {
    reply: session.call('When does the ferry to Flåm leave?', { callId }),
    steer: (text: string) => session.steer$(text).subscribe(),
  };
};
