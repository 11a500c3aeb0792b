import type { Message } from '@millrace/core';

/** What a message becomes a part of: a message of the wire, an item of it or a block. */
export interface Part {
  /** What tells it from others on the wire: a role or a type. */
  readonly kind: string;
  readonly json: string;
}

/** How a conversation is called on a wire. It depends on all of it, so that no two things are called alike. */
export interface Naming {
  /** The name of a tool, in a form that the vendor takes. */
  readonly toolName: (name: string) => string;
  /** The id of a tool use, in a form that the vendor takes. One that it takes as it is stays so in every conversation. */
  readonly toolId: (id: string) => string;
}

/** Writes a message for a wire. */
export type WriteParts = (message: Message, naming: Naming) => readonly Part[];

type Called = readonly (readonly [given: string, wire: string])[];

/** A message that has been written, and what was called how in it. */
interface Kept {
  readonly parts: readonly Part[];
  readonly names: Called;
  readonly ids: Called;
}

/**
 * Characters of a message that is kept. A longer one is a picture or a document; to hold it twice would cost more than
 * to write it again.
 */
const longest = 100_000;

/**
 * Writes each message once: every request says again what the one before has said. What was written is kept as long
 * as the message is there, and used while its names and ids are called the same. Of a message that may still change
 * nothing is kept.
 */
export const keptParts = (write: WriteParts): WriteParts => {
  const kept = new WeakMap<Message, Kept>();
  return (message, naming) => {
    const known = kept.get(message);
    if (known !== undefined && isCalled(known.names, naming.toolName)) {
      if (isCalled(known.ids, naming.toolId)) return known.parts;
    }
    const names = new Map<string, string>();
    const ids = new Map<string, string>();
    const parts = write(message, {
      toolName: noting(naming.toolName, names),
      toolId: noting(naming.toolId, ids),
    });
    if (isFixed(message) && parts.reduce((sum, { json }) => sum + json.length, 0) <= longest) {
      const renamed = [...ids].filter(([id, wire]) => id !== wire);
      kept.set(message, { parts, names: [...names], ids: renamed });
    }
    return parts;
  };
};

const isCalled = (called: Called, toWire: (given: string) => string): boolean =>
  called.every(([given, wire]) => toWire(given) === wire);

const noting =
  (toWire: (given: string) => string, called: Map<string, string>) =>
  (given: string): string => {
    const wire = toWire(given);
    called.set(given, wire);
    return wire;
  };

/** Whether nothing of a message that goes to a model can change. */
const isFixed = (message: Message): boolean =>
  Object.isFrozen(message) &&
  Object.isFrozen(message.content) &&
  message.content.every((block) =>
    block.type === 'tool_result'
      ? Object.isFrozen(block) && isFrozenThrough(block.content)
      : isFrozenThrough(block),
  );

const isFrozenThrough = (value: unknown): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (Object.isFrozen(value) && Object.values(value).every(isFrozenThrough));
