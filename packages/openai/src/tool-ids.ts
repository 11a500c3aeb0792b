import type { Message } from '@millrace/core';
import type { ToolIdRule } from './profile.js';

/** OpenAI refuses longer ones. */
export const shortIds: ToolIdRule = { accepts: /^.{1,40}$/su, rename: (n) => `call_${n}` };

/**
 * Gives the ids of tool uses in a form that a vendor takes. Ids that it takes stay; the others are numbered in the
 * order of the conversation, so that they are the same in its next request.
 */
export const toolIds = (
  messages: readonly Message[],
  { accepts, rename }: ToolIdRule = shortIds,
): ((id: string) => string) => {
  const ids = messages.flatMap((message) =>
    message.role === 'assistant'
      ? message.content.flatMap((block) => (block.type === 'tool_use' ? [block.id] : []))
      : [],
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
    if (accepts.test(id)) return id;
    const known = renamed.get(id) ?? free();
    renamed.set(id, known);
    return known;
  };
  ids.forEach(toWire);
  return toWire;
};
