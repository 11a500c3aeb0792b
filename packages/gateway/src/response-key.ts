import { type Block, type Message, type ModelRequest, textOf, type UserMessage } from 'millrace';
import { canonicalJson } from 'millrace/values';

/** A request without what differs in each call: the ids of messages and of tool calls, and data of the user interface. */
export const requestText = (model: string, { messages, ...options }: ModelRequest): string =>
  canonicalJson({ model, options, messages: withoutIds(messages) });

/** The last question of a request and the rest of it; `undefined` if it has no question or it is not only text. */
export const splitQuestion = (
  model: string,
  request: ModelRequest,
): { readonly place: string; readonly text: string } | undefined => {
  const last = request.messages.at(-1);
  if (last?.role !== 'user' || !isText(last)) return undefined;
  const blank: UserMessage = { ...last, content: [] };
  const messages = [...request.messages.slice(0, -1), blank];
  return { place: requestText(model, { ...request, messages }), text: textOf(last) };
};

const isText = ({ content }: UserMessage): boolean => content.every(({ type }) => type === 'text');

const withoutIds = (messages: readonly Message[]): readonly unknown[] => {
  const numbers = new Map<string, number>();
  const numberOf = (id: string): number => {
    const number = numbers.get(id) ?? numbers.size;
    numbers.set(id, number);
    return number;
  };
  const plain = (block: Block): unknown => {
    if (block.type === 'tool_call') return { ...block, id: numberOf(block.id) };
    if (block.type !== 'tool_result') return block;
    const { details: _details, suspended: _suspended, from: _from, ...result } = block;
    return { ...result, toolCallId: numberOf(block.toolCallId) };
  };
  return messages.map(({ id: _id, ...message }) => ({
    ...message,
    content: message.content.map(plain),
  }));
};
