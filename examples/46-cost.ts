// What calls cost, by model and by agent, from prices of yours; and a budget that counts with them.
import { createAgent, type ModelChunk } from 'millrace';
import { agentTool } from 'millrace/teams';
import { scriptedModel, text, toolCall } from 'millrace/testing';
import { budget, cost, readPriceList } from 'millrace/traffic';
import { describeCost } from 'millrace/values';

// Of a file of yours: the prices of a million tokens on a day. These are made up.
const list = readPriceList({
  currency: 'USD',
  date: '2026-11-30',
  prices: { small: { input: 0.2, output: 1 }, 'large*': { input: 2, output: 10, cacheRead: 0.2 } },
});
const used = (inputTokens: number, outputTokens: number): ModelChunk => ({
  type: 'usage',
  usage: { inputTokens, outputTokens, cacheReadTokens: 10_000 },
});
const researcher = createAgent({
  name: 'researcher',
  model: { ...scriptedModel([text('By a wheel.'), used(4_000, 300)]), name: 'small' },
});
const writer = createAgent({
  name: 'writer',
  model: {
    ...scriptedModel(
      [toolCall('research', { user_prompt: 'How does a mill turn?' }), used(900, 40)],
      [text('A wheel turns it.'), used(1_000, 200)],
    ),
    name: 'large-2026-10',
  },
  tools: [agentTool(researcher, { name: 'research', description: 'Researches a question.' })],
  use: [cost(list), budget({ money: 0.5, prices: list.prices })],
});

const { cost: spent, reason } = await writer.call('How does a mill turn?');
if (spent !== undefined) {
  console.log(`${reason}, ${describeCost(spent)}, with the prices of ${spent.date}`);
  for (const [name, { total }] of Object.entries(spent.models)) console.log(`${name}: ${total}`);
  for (const [name, { total }] of Object.entries(spent.agents)) console.log(`${name}: ${total}`);
}
