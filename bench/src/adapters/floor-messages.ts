import type {
  MessageParam,
  RawMessageStreamEvent,
  ToolUseBlockParam,
} from '@anthropic-ai/sdk/resources';
import type { Adapter, CallOptions, Setup } from '../adapter.js';
import { apiKey, lookup, question, runLookup } from '../lookup.js';
import { sseBatches } from './sse-batches.js';

/** The same as the floor over Anthropic's messages: what adapters of that wire are measured against. */
export const open = ({ baseURL }: Setup): Adapter => {
  const { name, description, parameters } = lookup;
  const tools = [{ name, description, input_schema: parameters }];

  /** Yields the text deltas of each network read, and returns the whole answer. */
  async function* answer(
    model: string,
    messages: MessageParam[],
    signal?: AbortSignal,
  ): AsyncGenerator<readonly string[], string> {
    for (;;) {
      const response = await fetch(`${baseURL}/messages`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'anthropic-version': '2023-06-01',
          'x-api-key': apiKey,
        },
        body: JSON.stringify({ model, max_tokens: 4_096, messages, tools, stream: true }),
        signal: signal ?? null,
      });
      if (!response.ok || response.body === null) throw new Error(await response.text());
      const texts: string[] = [];
      const uses: { id: string; name: string; json: string }[] = [];
      for await (const events of sseBatches<RawMessageStreamEvent>(response.body)) {
        const deltas: string[] = [];
        for (const event of events) {
          if (event.type === 'content_block_start') {
            const { content_block: block, index } = event;
            if (block.type === 'tool_use')
              uses[index] = { id: block.id, name: block.name, json: '' };
          } else if (event.type === 'content_block_delta') {
            const { delta, index } = event;
            const use = uses[index];
            if (delta.type === 'text_delta') deltas.push(delta.text);
            else if (delta.type === 'input_json_delta' && use) use.json += delta.partial_json;
          }
        }
        texts.push(...deltas);
        yield deltas;
      }
      const text = texts.join('');
      const asked = uses.filter(Boolean);
      messages.push({
        role: 'assistant',
        content: [
          ...(text === '' ? [] : [{ type: 'text' as const, text }]),
          ...asked.map(({ json, ...use }): ToolUseBlockParam => ({
            type: 'tool_use',
            ...use,
            input: JSON.parse(json),
          })),
        ],
      });
      if (asked.length === 0) return text;
      const content = await Promise.all(
        asked.map(async ({ id, json }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: await runLookup(json),
        })),
      );
      messages.push({ role: 'user', content });
    }
  }

  const ask = async (
    model: string,
    messages: MessageParam[],
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
      const messages: MessageParam[] = [{ role: 'user', content: question }];
      for await (const deltas of answer(script, messages, signal)) yield* deltas;
    },
    session: () => {
      const messages: MessageParam[] = [];
      return { call: (script) => ask(script, messages) };
    },
  };
};
