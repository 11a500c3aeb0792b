// A model of the AI SDK's provider packages, with tools of the AI SDK and of Millrace. The server stands for Google.
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { serve } from '@hono/node-server';
import { aiSdkModel, fromAiSdkTools } from '@millrace/ai-sdk';
import { createAgent, isEvent, tool } from 'millrace';
import { Hono } from 'hono';
import { z } from 'zod';

const city = z.object({ city: z.string() });
const call = (name: string) => ({ functionCall: { name, args: { city: 'Oslo' } } });
const answers = [
  [[call('weather'), call('population')], 'STOP'],
  [[{ text: 'Oslo: snow, ' }], undefined],
  [[{ text: '700,000 people.' }], 'STOP'],
] as const;
const event = ([parts, finishReason]: (typeof answers)[number]): string =>
  `data: ${JSON.stringify({ candidates: [{ content: { parts }, finishReason }] })}\n\n`;
const app = new Hono().post('*', async (c) => {
  const isAnswered = (await c.req.text()).includes('functionResponse');
  const events = isAnswered ? answers.slice(1) : answers.slice(0, 1);
  return c.body(events.map(event).join(''), 200, { 'content-type': 'text/event-stream' });
});

const main = async (port: number): Promise<void> => {
  const google = createGoogleGenerativeAI({ apiKey: 'test', baseURL: `http://127.0.0.1:${port}` });
  const population = { description: 'People.', inputSchema: city, execute: () => '700,000' };
  const weather = tool({ name: 'weather', description: 'W.', input: city, run: () => 'Snow.' });
  const model = aiSdkModel(google('gemini-2.5-flash'));
  const agent = createAgent({ model, tools: [weather, ...fromAiSdkTools({ population })] });
  for await (const it of agent.stream('Tell me about Oslo.')) {
    if (isEvent(it, 'postActing')) console.log(it.toolCall.name, it.result.content);
    if (isEvent(it, 'reasoningChunk') && it.kind === 'text') console.log(it.delta);
  }
  server.close();
};
const address = { hostname: '127.0.0.1', port: 0 };
const server = serve({ fetch: app.fetch, ...address }, ({ port }) => void main(port));
