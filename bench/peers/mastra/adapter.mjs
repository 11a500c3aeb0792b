import '../quiet.mjs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { z } from 'zod';
import { adapterOf, apiKey, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const provider = createOpenAICompatible({
    name: 'bench',
    baseURL,
    apiKey,
    includeUsage: true,
  });
  const tools = {
    [lookup.name]: createTool({
      id: lookup.name,
      description: lookup.description,
      inputSchema: z.object({ city: z.string(), day: z.number() }),
      execute: async (input) => lookup.run(input),
    }),
  };
  const agentFor = once(
    (script) =>
      new Agent({
        id: 'bench',
        name: 'bench',
        instructions: '',
        model: provider(script),
        tools,
        maxRetries: 0,
      }),
  );

  return adapterOf(async (script, signal) => {
    const { fullStream } = await agentFor(script).stream(question, {
      maxSteps: 10_000,
      toolCallConcurrency: 16,
      modelSettings: { maxRetries: 0 },
      abortSignal: signal,
    });
    return { parts: fullStream };
  }, textOf);
}

function textOf({ type, payload }) {
  if (type === 'error') throw payload.error;
  return type === 'text-delta' ? payload.text : undefined;
}
