// Going back: a call is forked at one of its steps, with another result of a tool, and goes on from there.
import { createAgent, textOf, tool } from '@millrace/core';
import { calls$, createCallStore, fork$, inProcessCalls, steps$ } from '@millrace/core/journal';
import { type ScriptedAnswer, scriptedModel, text, toolUse } from '@millrace/core/testing';
import { lastValueFrom } from 'rxjs';

const store = createCallStore(inProcessCalls());
const forecast = tool({ name: 'forecast', description: 'The weather.', run: () => 'Rain.' });

// Stands for a model: it looks at the forecast, and says what to take along.
const advise: ScriptedAnswer = ({ messages }) => {
  const weather = messages.findLast(({ role }) => role === 'tool');
  if (weather === undefined) return [toolUse('forecast')];
  return [text(JSON.stringify(weather).includes('Sun') ? 'A hat.' : 'An umbrella.')];
};
const model = scriptedModel(advise, advise, advise);
const agent = createAgent({ model, tools: [forecast], journal: store });

const question = 'What do I take along?';
console.log(textOf(await agent.call(question, { callId: 'monday' })));

steps$(store, 'monday').subscribe(({ id, kind }) => console.log(`  ${kind}: ${id}`));
