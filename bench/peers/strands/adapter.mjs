import '../quiet.mjs';
import { Agent, NullConversationManager, tool } from '@strands-agents/sdk';
import { OpenAIModel } from '@strands-agents/sdk/models/openai';
import { z } from 'zod';
import { adapterOf, apiKey, conversationOf, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const tools = [
    tool({
      name: lookup.name,
      description: lookup.description,
      inputSchema: z.object({ city: z.string(), day: z.number() }),
      callback: lookup.run,
    }),
  ];
  // Over chat completions it keeps only the last of the tool calls that a turn streams.
  const modelFor = once(
    (script) =>
      new OpenAIModel({
        api: 'responses',
        modelId: script,
        apiKey,
        clientConfig: { baseURL, maxRetries: 0 },
      }),
  );
  // An agent here is one conversation: each call has its own. The default manager drops all but 40 messages.
  const agentFor = (script) =>
    new Agent({
      model: modelFor(script),
      tools,
      conversationManager: new NullConversationManager(),
      retryStrategy: null,
      printer: false,
    });

  const start = (agent, signal) => ({ parts: agent.stream(question, { cancelSignal: signal }) });

  return {
    ...adapterOf((script, signal) => start(agentFor(script), signal), textOf),
    session() {
      let agent;
      return conversationOf((script) => {
        agent ??= agentFor(script);
        agent.model = modelFor(script);
        return start(agent);
      }, textOf);
    },
  };
}

const textOf = ({ type, event }) =>
  type === 'modelStreamUpdateEvent' &&
  event.type === 'modelContentBlockDeltaEvent' &&
  event.delta.type === 'textDelta'
    ? event.delta.text
    : undefined;
