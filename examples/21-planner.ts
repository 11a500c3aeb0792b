// An agent that looks at its task, reflects on what tools give, keeps a plan, and says when it is done.
import { createAgent, only, textOf, tool } from 'millrace';
import { isPlan, planText } from 'millrace/planning';
import { scriptedModel, text } from 'millrace/testing';
import { planner } from '@millrace/presets';
import { z } from 'zod';

const stock = tool({
  name: 'stock',
  description: 'Kilograms of a grain in the store.',
  input: z.object({ grain: z.string() }),
  run: ({ grain }) => (grain === 'rye' ? 120 : 0),
});

const says = (words: string) => [text(words)];
const uses = (name: string, args: object) => says(JSON.stringify([{ name, arguments: args }]));
const model = scriptedModel(
  says('First see which grain there is, then choose the bread.'),
  uses('create_plan', { goal: 'Choose a bread.', steps: ['Look into the store', 'Choose'] }),
  says(
    '[{"name":"stock","arguments":{"grain":"rye"}},{"name":"stock","arguments":{"grain":"wheat"}}]',
  ),
  says('Only rye is there.'),
  uses('update_step', { step: 1, status: 'done', outcome: 'only rye' }),
  uses('complete_task', { answer: 'Rye bread: there are 120 kg of rye, and no wheat.' }),
);

const reflect = ({ messages }: { readonly messages: readonly object[] }) =>
  JSON.stringify(messages.at(-1)).includes('"120"');
const agent = createAgent(planner({ model, tools: [stock] }, { plan: true, reflect }));
agent.events$
  .pipe(only('postPlanning'))
  .subscribe(({ phase, message }) => console.log(`${phase}: ${textOf(message)}`));
agent.events$
  .pipe(only('stateChanged'))
  .subscribe(({ state }) => isPlan(state) && console.log(planText(state)));

const reply = await agent.call('Which bread can we bake?');
console.log(textOf(reply), `(${reply.iterations} turns, ${model.requests.length} requests)`);
