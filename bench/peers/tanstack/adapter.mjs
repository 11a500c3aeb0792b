import '../quiet.mjs';
import { chat, toolDefinition } from '@tanstack/ai';
import { createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { z } from 'zod';
import { adapterOf, apiKey, lookup, once, question } from '../task.mjs';

/** @type {import('../../src/adapter.js').Open} */
export function open({ baseURL }) {
  const tools = [
    toolDefinition({
      name: lookup.name,
      description: lookup.description,
      inputSchema: z.object({ city: z.string(), day: z.number() }),
    }).server(lookup.run),
  ];
  const modelFor = once((script) =>
    createOpenaiChatCompletions(script, apiKey, { baseURL, maxRetries: 0 }),
  );

  return adapterOf(
    (script, signal) => ({
      parts: chat({
        adapter: modelFor(script),
        messages: [{ role: 'user', content: question }],
        tools,
        agentLoopStrategy: () => true,
        abortController: controllerOf(signal),
        debug: false,
      }),
    }),
    textOf,
  );
}

function textOf(event) {
  if (event.type === 'RUN_ERROR') throw new Error(event.message);
  return event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : undefined;
}

// It takes a controller where others take a signal.
function controllerOf(signal) {
  if (!signal) return undefined;
  const controller = new globalThis.AbortController();
  signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true });
  return controller;
}
