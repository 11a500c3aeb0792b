// Code acting: the model writes code that calls the tools, and only what it returns goes back to the model.
import { createAgent, tool } from 'millrace';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { codeActing } from '@millrace/tools/code-acting';
import { z } from 'zod';

const listCities = tool({
  name: 'list_cities',
  description: 'Lists all cities.',
  run: () => ['Oslo', 'Rome', 'Berlin'],
});
const weather = tool({
  name: 'weather',
  description: 'Returns the weather in degrees Celsius.',
  input: z.object({ city: z.string() }),
  run: ({ city }) => ({ city, degrees: { Oslo: -4, Rome: 14, Berlin: 3 }[city] ?? 0 }),
});

const code = `
const cities = await tools.list_cities();
const all = await Promise.all(cities.map((city) => tools.weather({ city })));
console.log(all.length, 'cities');
return all.sort((a, b) => b.degrees - a.degrees)[0];`;
const model = scriptedModel([toolCall('run_javascript', { code }, 'code')], [text('In Rome.')]);
const agent = createAgent({ model, tools: [listCities, weather], use: [codeActing()] });

agent.events$.subscribe((event) => {
  if (event.type !== 'postActing') return;
  const { id, name, input } = event.toolCall;
  console.log(id, name, name === 'run_javascript' ? '' : JSON.stringify(input));
});
const { toolCalls, text: answer } = await agent.call('Where is it warmest?');
console.log(toolCalls[0]?.output);
console.log(answer);
console.log(model.requests[0]?.tools?.[0]?.description.split('\n').slice(1).join('\n'));
