import type { Message } from '@millrace/core';

/** How a conversation is called on a wire. It depends on all of it, so that no two things are called alike. */
export interface Naming {
  /** The name of a tool, in a form that the vendor takes. */
  readonly toolName: (name: string) => string;
  /** The id of a tool use, in a form that the vendor takes. One that it takes as it is stays so in every conversation. */
  readonly toolId: (id: string) => string;
}

/** Writes messages in a row for a wire. */
export type Write<Written> = (messages: readonly Message[], naming: Naming) => Written;

type Called = readonly (readonly [given: string, wire: string])[];

/** Messages that have been written, and what was called how in them. */
interface Kept<Written> {
  readonly messages: readonly Message[];
  readonly written: Written;
  readonly names: Called;
  readonly ids: Called;
}

/**
 * Characters of what is kept. What is longer is a picture or a document; to hold it twice would cost more than to write
 * it again.
 */
const longest = 100_000;

/**
 * Writes the same messages once: every request says again what the one before has said. What was written is kept as
 * long as the last of them is there, and used while its names and ids are called the same. Of messages that may still
 * change nothing is kept.
 */
export const writeOnce = <Written>(
  write: Write<Written>,
  lengthOf: (written: Written) => number,
): Write<Written> => {
  const kept = new WeakMap<Message, Kept<Written>>();
  return (messages, naming) => {
    const last = messages.at(-1);
    const known = last === undefined ? undefined : kept.get(last);
    if (known !== undefined && isAbout(known, messages, naming)) return known.written;
    const names = new Map<string, string>();
    const ids = new Map<string, string>();
    const written = write(messages, {
      toolName: noting(naming.toolName, names),
      toolId: noting(naming.toolId, ids),
    });
    if (last !== undefined && messages.every(isFixed) && lengthOf(written) <= longest) {
      const renamed = [...ids].filter(([id, wire]) => id !== wire);
      kept.set(last, { messages, written, names: [...names], ids: renamed });
    }
    return written;
  };
};

const isAbout = (
  known: Kept<unknown>,
  messages: readonly Message[],
  { toolName, toolId }: Naming,
): boolean =>
  known.messages.length === messages.length &&
  known.messages.every((message, index) => message === messages[index]) &&
  isCalled(known.names, toolName) &&
  isCalled(known.ids, toolId);

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
