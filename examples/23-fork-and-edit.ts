// Time travel: forks a call at one of its steps, with another tool result, and continues from there.
import { createAgent, textOf, tool } from 'millrace';
import {
  createCallStore,
  fork$,
  inProcessCalls,
  otherResult,
  steps$,
  journal,
} from 'millrace/journal';
import { type ScriptedAnswer, scriptedModel, text, toolCall } from 'millrace/testing';
import { firstValueFrom, lastValueFrom, mergeMap, tap } from 'rxjs';

const forecast = tool({ name: 'forecast', description: 'The weather.', run: () => 'Rain.' });

// Stands in for a model: reads the forecast and answers what to take along.
const advise: ScriptedAnswer = ({ messages }) => {
  const weather = messages.findLast(({ role }) => role === 'tool');
  if (weather === undefined) return [toolCall('forecast')];
  return [text(JSON.stringify(weather).includes('Sun') ? 'A hat.' : 'An umbrella.')];
};

const store = createCallStore(inProcessCalls());
const model = scriptedModel(advise, advise, advise);
const durable = journal(store);
const agent = createAgent({ model, tools: [forecast], use: [durable] });
console.log(textOf(await agent.call('What do I take along?', { callId: 'monday' })));

const shown$ = steps$(store, 'monday').pipe(
  tap(({ id, kind, summary }) => console.log(`  ${id} (${kind}): ${summary}`)),
);
await lastValueFrom(shown$);

// From step 2 on, as if the forecast had been sun: the tool does not run again, the model is asked again.
const edit = { '1/0': otherResult('Sun.') };
const sunny$ = fork$(store, 'monday', { at: '2', edit, callId: 'sunny' });
console.log(
  textOf(await firstValueFrom(sunny$.pipe(mergeMap((id) => durable.resume$(agent, id))))),
);
