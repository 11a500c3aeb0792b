// A model that has no tools of its own: it writes what it wants to do, and that is read while it streams.
import { serve } from '@hono/node-server';
import { createAgent, only, tool } from 'millrace';
import { finalMarkers } from '@millrace/text-tools';
import { llamaCpp } from '@millrace/openai';
import { action } from '@millrace/presets';
import { Hono } from 'hono';
import { z } from 'zod';

// Stands for llama.cpp, Ollama or the like on this machine, with a small model that is not careful.
const replies = [
  `Thought: I look.\nAction: {'tool': 'weather', 'inputs': {'city': 'Oslo',}}`,
  'Thought: Now I know.\nAction: {"final_answer": "Take a coat: it snows."}',
];
const app = new Hono().post('/v1/chat/completions', () => {
  const pieces = replies.shift()?.match(/[^]{1,6}/g) ?? [];
  const deltas = pieces.map((content) => ({ index: 0, delta: { content }, finish_reason: null }));
  const chunks = [...deltas, { index: 0, delta: {}, finish_reason: 'stop' }];
  const lines = chunks.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`);
  return new Response(lines.join(''), { headers: { 'content-type': 'text/event-stream' } });
});

const weather = tool({
  name: 'weather',
  description: 'Tells the weather in a city.',
  input: z.object({ city: z.string() }),
  run: ({ city }) => `It snows in ${city}.`,
});

const ask = (port: number): void => {
  const model = llamaCpp('small', { baseURL: `http://127.0.0.1:${port}/v1` });
  const agent = createAgent(action({ model, tools: [weather] }));
  agent.events$.pipe(only('repaired')).subscribe(({ after }) => console.log('\nread as', after));
  const text$ = agent.stream$('Coat or no coat in Oslo?').pipe(finalMarkers());
  const complete = () => void server.close();
  text$.subscribe({ next: (text) => process.stdout.write(text), complete });
};
const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, (at) => ask(at.port));
