import type { ChatCompletionChunk, ChatCompletionMessageParam } from 'openai/resources';
import type { Adapter, CallOptions, Setup } from '../adapter.js';
import { apiKey, lookup, question, runLookup } from '../lookup.js';
import { sseBatches } from './sse-batches.js';

/** A loop over chat completions by hand, with `fetch` and nothing else: what all others are measured against. */
export const open = ({ baseURL }: Setup): Adapter => {
  const tools = [{ type: 'function', function: lookup }];

  /** Yields the text deltas of each network read, and returns the whole answer. */
  async function* answer(
    model: string,
    messages: ChatCompletionMessageParam[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly string[], string> {
    for (;;) {
      const response = await fetch(`${baseURL}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
        body: JSON.stringify({
          model,
          messages,
          tools,
          stream: true,
          stream_options: { include_usage: true },
        }),
        signal: signal ?? null,
      });
      if (!response.ok || response.body === null) throw new Error(await response.text());
      const texts: string[] = [];
      const calls: { id: string; name: string; json: string }[] = [];
      for await (const chunks of sseBatches<ChatCompletionChunk>(response.body)) {
        const deltas: string[] = [];
        for (const { choices } of chunks) {
          const delta = choices[0]?.delta;
          if (delta?.content) deltas.push(delta.content);
          for (const piece of delta?.tool_calls ?? []) {
            const call = (calls[piece.index] ??= { id: '', name: '', json: '' });
            call.id ||= piece.id ?? '';
            call.name ||= piece.function?.name ?? '';
            call.json += piece.function?.arguments ?? '';
          }
        }
        texts.push(...deltas);
        yield deltas;
      }
      const text = texts.join('');
      messages.push({
        role: 'assistant',
        content: text || null,
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, json }) => ({
            id,
            type: 'function' as const,
            function: { name, arguments: json },
          })),
        }),
      });
      if (calls.length === 0) return text;
      const results = await Promise.all(
        calls.map(async ({ id, json }) => ({
          role: 'tool' as const,
          tool_call_id: id,
          content: await runLookup(json),
        })),
      );
      messages.push(...results);
    }
  }

  const ask = async (
    model: string,
    messages: ChatCompletionMessageParam[],
    { onDelta, signal }: CallOptions = {},
  ): Promise<string> => {
    messages.push({ role: 'user', content: question });
    const answered = answer(model, messages, signal);
    for (;;) {
      const { done, value } = await answered.next();
      if (done) return value;
      if (onDelta) value.forEach((delta) => onDelta(delta));
    }
  };

  return {
    call: (script, options) => ask(script, [], options),
    async *pull(script, { signal } = {}) {
      const messages: ChatCompletionMessageParam[] = [{ role: 'user', content: question }];
      for await (const deltas of answer(script, messages, signal)) yield* deltas;
    },
    session: () => {
      const messages: ChatCompletionMessageParam[] = [];
      return { call: (script) => ask(script, messages) };
    },
  };
};
