// One agent leads others: each is a tool of its own, several are asked at once, and the reply counts what they cost.
import { createAgent, only, textOf, tool } from 'millrace';
import { supervisor } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';

// The models say what is written here, so that this runs offline: put your own model in their places.
const tokens = { inputTokens: 20, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
const saying = (words: string) => [text(words), { type: 'usage', usage: tokens } as const];

const gauge = tool({ name: 'gauge', description: 'Reads the gauge.', run: () => '1.2 m' });
const river = createAgent({
  name: 'river',
  tools: [gauge],
  model: scriptedModel([toolCall('gauge')], saying('The river stands at 1.2 m.')),
});
const weather = createAgent({
  name: 'weather',
  model: scriptedModel(saying('Rain until Friday.')),
});

const miller = supervisor({
  name: 'miller',
  model: scriptedModel(
    [
      toolCall('river', { user_prompt: 'How high is the river?' }),
      toolCall('weather', { user_prompt: 'Will it rain this week?' }),
    ],
    saying('Open the gate: the river is high, and more rain comes.'),
  ),
  agents: [
    { agent: river, description: 'Knows how high the river is.' },
    { agent: weather, description: 'Knows the weather of the next days.' },
  ],
});

miller.events$.pipe(only('preCall')).subscribe(({ agent }) => console.log(agent.join('/')));
const reply = await miller.call('Shall we open the gate?');
for (const { name, output } of reply.toolCalls) console.log(`${name}: ${output}`);
console.log(`${textOf(reply)} (${reply.usage.inputTokens} tokens in all)`);
