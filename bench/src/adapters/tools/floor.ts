import type { Adapter, CallOptions } from '../../adapter.js';
import { lookup, question, weatherOf } from '../../lookup.js';
import { compile } from './core-ajv.js';
import { type PlayedCall, playedCalls } from './played-call.js';

interface ToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

type Message =
  | { readonly role: 'user'; readonly content: string }
  | {
      readonly role: 'assistant';
      readonly content: string | null;
      readonly tool_calls?: readonly ToolCall[];
    }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string };

/** A loop by hand over a model in the process: `JSON.parse`, one compiled validator, and a `Promise.all` over the tools. */
export const open = (): Adapter => {
  const callOf = playedCalls();
  const isValid = compile(lookup.parameters);
  const isInput = (value: unknown): value is { readonly city: string; readonly day: number } =>
    isValid(value);

  const run = async ({ id, function: { arguments: json } }: ToolCall): Promise<Message> => {
    const input: unknown = JSON.parse(json);
    const content = isInput(input)
      ? weatherOf(input.city, input.day)
      : 'The arguments are invalid.';
    return { role: 'tool', tool_call_id: id, content: await Promise.resolve(content) };
  };

  const call = async (script: string, { onDelta }: CallOptions = {}): Promise<string> => {
    const played = callOf(script);
    const messages: Message[] = [{ role: 'user', content: question }];
    for (;;) {
      const deltas: string[] = [];
      const toolCalls: ToolCall[] = [];
      for (const piece of said(played, messages)) {
        if (typeof piece !== 'string') toolCalls.push(piece);
        else {
          deltas.push(piece);
          onDelta?.(piece);
        }
      }
      const text = deltas.join('');
      if (toolCalls.length === 0) return text;
      messages.push({ role: 'assistant', content: text || null, tool_calls: toolCalls });
      messages.push(...(await Promise.all(toolCalls.map(run))));
    }
  };
  return { call };
};

/** What the model says next: pieces of the answer, or tools. */
const said = (
  { uses, deltas, check }: PlayedCall,
  messages: readonly Message[],
): readonly (string | ToolCall)[] => {
  const results = messages.flatMap((message) =>
    message.role === 'tool' ? [{ id: message.tool_call_id, text: message.content }] : [],
  );
  if (results.length > 0) check(results);
  if (uses.length === 0 || results.length > 0) return deltas;
  return uses.map(({ id, name, json }) => ({
    id,
    type: 'function',
    function: { name, arguments: json },
  }));
};
