import Anthropic from '@anthropic-ai/sdk';
import type {
  MessageParam,
  RawMessageStreamEvent,
  ToolUseBlockParam,
} from '@anthropic-ai/sdk/resources';
import type { Adapter, CallOptions, Setup } from '../adapter.js';
import { apiKey, lookup, question, runLookup } from '../lookup.js';

/** The loop that people write by hand over the SDK of Anthropic. */
export const open = ({ baseURL }: Setup): Adapter => {
  const client = new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ''), apiKey, maxRetries: 0 });
  const { name, description, parameters } = lookup;
  const { type, properties, required } = parameters;
  const tools = [
    { name, description, input_schema: { type, properties, required: [...required] } },
  ];

  const stream = (model: string, messages: MessageParam[], signal?: AbortSignal) =>
    client.messages.create({ model, max_tokens: 4_096, messages, tools, stream: true }, { signal });

  const ask = async (
    model: string,
    messages: MessageParam[],
    { onDelta, signal }: CallOptions = {},
  ): Promise<string> => {
    messages.push({ role: 'user', content: question });
    for (;;) {
      const message = emptyMessage();
      for await (const event of await stream(model, messages, signal)) {
        const text = take(event, message);
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
      const messages: MessageParam[] = [{ role: 'user', content: question }];
      for (;;) {
        const message = emptyMessage();
        for await (const event of await stream(script, messages, signal)) {
          const text = take(event, message);
          if (text) yield text;
        }
        signal?.throwIfAborted();
        if (!(await goOn(message, messages))) return;
      }
    },
    session: () => {
      const messages: MessageParam[] = [];
      return { call: (script) => ask(script, messages) };
    },
  };
};

interface Taken {
  readonly texts: string[];
  readonly uses: Map<number, { readonly id: string; readonly name: string; json: string }>;
}

const emptyMessage = (): Taken => ({ texts: [], uses: new Map() });

/** Adds an event to its message, and gives the text in it. */
const take = (event: RawMessageStreamEvent, { texts, uses }: Taken): string | undefined => {
  if (event.type === 'content_block_start') {
    const { content_block: block, index } = event;
    if (block.type === 'tool_use') uses.set(index, { id: block.id, name: block.name, json: '' });
  } else if (event.type === 'content_block_delta') {
    const { delta, index } = event;
    const use = uses.get(index);
    if (delta.type === 'text_delta') {
      texts.push(delta.text);
      return delta.text;
    }
    if (delta.type === 'input_json_delta' && use) use.json += delta.partial_json;
  }
  return undefined;
};

/** Remembers a message and runs its tools; false where it asks for none. */
const goOn = async ({ texts, uses }: Taken, messages: MessageParam[]): Promise<boolean> => {
  const text = texts.join('');
  const asked = [...uses.values()];
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
  if (asked.length === 0) return false;
  const content = await Promise.all(
    asked.map(async ({ id, json }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: await runLookup(json),
    })),
  );
  messages.push({ role: 'user', content });
  return true;
};
