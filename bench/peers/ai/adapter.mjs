import '../quiet.mjs';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { isLoopFinished, streamText, tool } from 'ai';
import { z } from 'zod';
import { adapterOf, apiKey, lookup, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const provider = createOpenAICompatible({
    name: 'bench',
    baseURL,
    apiKey,
    includeUsage: true,
  });
  const tools = {
    [lookup.name]: tool({
      description: lookup.description,
      inputSchema: z.object({ city: z.string(), day: z.number() }),
      execute: lookup.run,
    }),
  };

  const ask = (script, messages, signal) =>
    streamText({
      model: provider(script),
      messages,
      tools,
      stopWhen: isLoopFinished(),
      maxRetries: 0,
      telemetry: { isEnabled: false },
      abortSignal: signal,
      onError: () => {},
    });

  return {
    ...adapterOf((script, signal) => ({ parts: ask(script, [asked], signal).stream }), textOf),
    session: () => conversation(ask),
  };
}

const asked = { role: 'user', content: question };

function textOf(part) {
  if (part.type === 'error') throw part.error;
  return part.type === 'text-delta' ? part.text : undefined;
}

// The SDK keeps no conversations: it gives the messages of a call, for the program to keep.
function conversation(ask) {
  const messages = [];
  return {
    async call(script) {
      messages.push(asked);
      const { text, responseMessages } = ask(script, messages);
      messages.push(...(await responseMessages));
      return text;
    },
  };
}
