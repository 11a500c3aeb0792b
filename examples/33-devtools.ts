// Devtools: open the printed address, then ask. The page shows the call while it runs, and can hold, fork and replay it.
import { createInterface } from 'node:readline';
import { createAgent, tool } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { demoModel } from '@millrace/demo-model';
import { devtools } from '@millrace/devtools';

const weather = tool({
  name: 'weather',
  description: 'Returns the weather in a city.',
  input: jsonSchema({
    type: 'object',
    properties: { city: { type: 'string', examples: ['Oslo'] } },
    required: ['city'],
  }),
  run: ({ city }) => `It snows in ${city}.`,
});

// Without a terminal, the agent stays as it is.
const enabled = process.stdin.isTTY;
const model = demoModel({ pace: enabled ? 50 : 0 });
const agent = devtools(createAgent({ name: 'forecaster', model, tools: [weather] }), {
  enabled,
  forks: true,
});

const question = 'What is the weather in Oslo?';
console.log((await agent.call(question)).text);

if (enabled) {
  process.stdout.write('Ask (Ctrl-C ends): ');
  for await (const asked of createInterface({ input: process.stdin }))
    console.log((await agent.call(asked || question)).text);
}
