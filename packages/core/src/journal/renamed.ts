import { isRecord } from '../json.js';

/** Fields that hold ids which a call gives; an `id` does where it is a message's. */
const idFields: ReadonlySet<string> = new Set(['messageId', 'callId', 'rootId', 'parentId']);

/** What models, tools and users have said, whatever it looks like. */
const foreignFields: ReadonlySet<string> = new Set([
  'details',
  'metadata',
  'output',
  'request',
  'suspended',
]);

/** What a step has given, with the ids of one call in it made those of another. What somebody has said stays, also where it holds such an id. */
export const renamed = (value: unknown, from: string, to: string): unknown => {
  const rename = (id: unknown): unknown => (typeof id === 'string' ? renamedId(id, from, to) : id);
  const walk = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(walk);
    if (!isRecord(part) || part['type'] === 'tool_use') return part;
    const isMessage = typeof part['role'] === 'string';
    return Object.fromEntries(
      Object.entries(part).map(([key, field]) => {
        if (idFields.has(key) || (isMessage && key === 'id')) return [key, rename(field)];
        // That of a call is a list of messages, and that of a tool is its own.
        const isForeign = foreignFields.has(key) || (key === 'input' && !Array.isArray(field));
        return [key, isForeign ? field : walk(field)];
      }),
    );
  };
  return walk(value);
};

/** An id that begins with that of a call, made that of another. */
export const renamedId = (id: string, from: string, to: string): string =>
  id === from || id.startsWith(`${from}/`) ? `${to}${id.slice(from.length)}` : id;
