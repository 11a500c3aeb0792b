import '../quiet.mjs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { Agent, createTool, InMemoryStorageAdapter, Memory } from '@voltagent/core';
import { z } from 'zod';
import { adapterOf, apiKey, conversationOf, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const provider = createOpenAICompatible({
    name: 'bench',
    baseURL,
    apiKey,
    includeUsage: true,
  });
  const tools = [
    createTool({
      name: lookup.name,
      description: lookup.description,
      parameters: z.object({ city: z.string(), day: z.number() }),
      execute: async (input) => lookup.run(input),
    }),
  ];
  const agentWith = (memory) =>
    once(
      (script) =>
        new Agent({
          name: 'bench',
          instructions: '',
          model: provider(script),
          tools,
          memory,
          maxSteps: 10_000,
          maxRetries: 0,
        }),
    );
  const agentFor = agentWith(false);
  const rememberingFor = agentWith(new Memory({ storage: new InMemoryStorageAdapter() }));

  const start = async (agent, options) => {
    let failure;
    const onError = (error) => (failure = error);
    const { textStream } = await agent.streamText(question, { ...options, onError });
    return { parts: textStream, ended: () => failure };
  };

  return {
    ...adapterOf((script, abortSignal) => start(agentFor(script), { abortSignal })),
    session(id) {
      const memory = { userId: id, conversationId: id };
      return conversationOf((script) => start(rememberingFor(script), { memory }));
    },
  };
}
