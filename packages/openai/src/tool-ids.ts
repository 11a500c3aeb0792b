import { type Message, toolCallsOf } from 'millrace';
import type { ToolIdRule } from './profile.js';

/** OpenAI rejects longer IDs. */
export const shortIds: ToolIdRule = { accepts: /^.{1,40}$/su, rename: (n) => `call_${n}` };

/**
 * Maps IDs of tool calls to those that a vendor accepts. Acceptable IDs stay the same; the others are numbered in the
 * order of the conversation, so they are stable across requests.
 */
export const toolIds = (
  messages: readonly Message[],
  rule: ToolIdRule = shortIds,
): ((id: string) => string) => {
  // Lazy, because most conversations only have acceptable IDs.
  let renamed: ((id: string) => string) | undefined;
  return (id) => {
    if (rule.accepts.test(id)) return id;
    renamed ??= numbered(messages, rule);
    return renamed(id);
  };
};

const numbered = (
  messages: readonly Message[],
  { accepts, rename }: ToolIdRule,
): ((id: string) => string) => {
  const ids = messages.flatMap((message) =>
    message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [],
  );
  const taken = new Set(ids.filter((id) => accepts.test(id)));
  const renamed = new Map<string, string>();
  let n = 0;
  const free = (): string => {
    n += 1;
    const id = rename(n);
    return taken.has(id) ? free() : id;
  };
  const toWire = (id: string): string => {
    const known = renamed.get(id) ?? free();
    renamed.set(id, known);
    return known;
  };
  ids.filter((id) => !accepts.test(id)).forEach(toWire);
  return toWire;
};
