import '../quiet.mjs';
import { MemorySaver } from '@langchain/langgraph';
import { ChatOpenAI } from '@langchain/openai';
import { createAgent, tool } from 'langchain';
import { z } from 'zod';
import { adapterOf, apiKey, conversationOf, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const tools = [
    tool(lookup.run, {
      name: lookup.name,
      description: lookup.description,
      schema: z.object({ city: z.string(), day: z.number() }),
    }),
  ];
  const modelFor = (script) =>
    new ChatOpenAI({
      model: script,
      apiKey,
      maxRetries: 0,
      useResponsesApi: false,
      configuration: { baseURL },
    });
  const agentFor = once((script) => createAgent({ model: modelFor(script), tools }));
  const checkpointer = new MemorySaver();
  const rememberingFor = once((script) =>
    createAgent({ model: modelFor(script), tools, checkpointer }),
  );

  const start = async (agent, options) => {
    const messages = [{ role: 'user', content: question }];
    const all = { streamMode: 'messages', recursionLimit: 10_000, ...options };
    return { parts: await agent.stream({ messages }, all) };
  };

  return {
    ...adapterOf((script, signal) => start(agentFor(script), { signal }), textOf),
    session(id) {
      const configurable = { thread_id: id };
      return conversationOf((script) => start(rememberingFor(script), { configurable }), textOf);
    },
  };
}

const textOf = ([message, { langgraph_node: node }]) =>
  node === 'model_request' ? message.text : undefined;
