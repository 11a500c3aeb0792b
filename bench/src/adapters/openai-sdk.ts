import OpenAI from 'openai';
import type { ChatCompletionChunk, ChatCompletionMessageParam } from 'openai/resources';
import type { Adapter, CallOptions, Setup } from '../adapter.js';
import { apiKey, lookup, question, runLookup } from '../lookup.js';

/** The loop that people write by hand over the SDK of OpenAI. */
export const open = ({ baseURL }: Setup): Adapter => {
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const { name, description, parameters } = lookup;
  const tools = [{ type: 'function' as const, function: { name, description, parameters } }];

  const stream = (model: string, messages: ChatCompletionMessageParam[], signal?: AbortSignal) =>
    client.chat.completions.create(
      { model, messages, tools, stream: true, stream_options: { include_usage: true } },
      { signal },
    );

  const ask = async (
    model: string,
    messages: ChatCompletionMessageParam[],
    { onDelta, signal }: CallOptions = {},
  ): Promise<string> => {
    messages.push({ role: 'user', content: question });
    for (;;) {
      const message = emptyMessage();
      for await (const chunk of await stream(model, messages, signal)) {
        const text = take(chunk, message);
        if (text) onDelta?.(text);
      }
      // The stream of the SDK just ends where it is aborted.
      signal?.throwIfAborted();
      if (await goOn(message, messages)) continue;
      return message.texts.join('');
    }
  };

  return {
    call: (script, options) => ask(script, [], options),
    async *pull(script, { signal } = {}) {
      const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
      for (;;) {
        const message = emptyMessage();
        for await (const chunk of await stream(script, messages, signal)) {
          const text = take(chunk, message);
          if (text) yield text;
        }
        signal?.throwIfAborted();
        if (!(await goOn(message, messages))) return;
      }
    },
    session: () => {
      const messages: ChatCompletionMessageParam[] = [];
      return { call: (script) => ask(script, messages) };
    },
  };
};

interface Taken {
  readonly texts: string[];
  readonly calls: { id: string; name: string; json: string }[];
}

const emptyMessage = (): Taken => ({ texts: [], calls: [] });

/** Adds a chunk to its message, and gives the text in it. */
const take = ({ choices }: ChatCompletionChunk, { texts, calls }: Taken): string | undefined => {
  const delta = choices[0]?.delta;
  for (const piece of delta?.tool_calls ?? []) {
    const call = (calls[piece.index] ??= { id: '', name: '', json: '' });
    call.id ||= piece.id ?? '';
    call.name ||= piece.function?.name ?? '';
    call.json += piece.function?.arguments ?? '';
  }
  if (!delta?.content) return undefined;
  texts.push(delta.content);
  return delta.content;
};

/** Remembers a message and runs its tools; false where it asks for none. */
const goOn = async (
  { texts, calls }: Taken,
  messages: ChatCompletionMessageParam[],
): Promise<boolean> => {
  messages.push({
    role: 'assistant',
    content: texts.join('') || null,
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ id, name, json }) => ({
        id,
        type: 'function' as const,
        function: { name, arguments: json },
      })),
    }),
  });
  const results = await Promise.all(
    calls.map(async ({ id, json }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: await runLookup(json),
    })),
  );
  messages.push(...results);
  return calls.length > 0;
};
