import '../quiet.mjs';
import { Agent, MemorySession, OpenAIChatCompletionsModel, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { adapterOf, apiKey, conversationOf, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const runner = new Runner({ tracingDisabled: true });
  const tools = [
    tool({
      name: lookup.name,
      description: lookup.description,
      parameters: z.object({ city: z.string(), day: z.number() }),
      execute: lookup.run,
    }),
  ];
  const agentFor = once(
    (script) =>
      new Agent({ name: 'bench', model: new OpenAIChatCompletionsModel(client, script), tools }),
  );

  const start = async (script, signal, session) => {
    const options = { stream: true, maxTurns: null, signal, session };
    return { parts: await runner.run(agentFor(script), question, options) };
  };

  return {
    ...adapterOf(start, textOf),
    session(sessionId) {
      const session = new MemorySession({ sessionId });
      return conversationOf((script, signal) => start(script, signal, session), textOf);
    },
  };
}

const textOf = (event) =>
  event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta'
    ? event.data.delta
    : undefined;
