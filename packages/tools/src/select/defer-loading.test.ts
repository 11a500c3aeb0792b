import { expect, it } from '@jest/globals';
import { createAgent, tool } from 'millrace';
import { scriptedModel, text } from 'millrace/testing';
import { deferLoading } from './defer-loading.js';

it('T11: deferLoading marks a tool for Anthropic and OpenAI, and keeps its other fields', async () => {
  const weather = tool({
    name: 'weather',
    description: 'The weather.',
    vendorOptions: { Anthropic: { strict: true }, Other: { x: 1 } },
    run: () => 'Snow.',
  });
  const model = scriptedModel([text('.')]);
  await createAgent({ model, tools: [deferLoading(weather)] }).call('Go on.');
  expect(model.requests[0]?.tools).toMatchObject([
    {
      name: 'weather',
      vendorOptions: {
        Anthropic: { strict: true, defer_loading: true },
        OpenAI: { defer_loading: true },
        Other: { x: 1 },
      },
    },
  ]);
  expect(weather.vendorOptions).toEqual({ Anthropic: { strict: true }, Other: { x: 1 } });
});
