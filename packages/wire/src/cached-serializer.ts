import type { Message, ToolCallBlock } from 'millrace';

/** The vendor's names of tools and tool calls. They depend on the whole conversation, so that they are unique. */
export interface WireNames {
  /** Maps the name of a tool to one that the vendor accepts. */
  readonly toolName: (name: string) => string;
  /**
   * Maps the ID of a tool call to one that the vendor accepts. An acceptable ID stays the same in every conversation.
   */
  readonly toolId: (id: string) => string;
  /** Finds the tool call that a result belongs to. Its message is sent before that of the result. */
  readonly callOf?: ((id: string) => ToolCallBlock | undefined) | undefined;
}

/** Serializes consecutive messages for a vendor. */
export type Serializer<Written> = (messages: readonly Message[], naming: WireNames) => Written;

type NameEntries = readonly (readonly [given: string, wire: string])[];

/** Serialized messages, and the names and IDs in them. */
interface CacheEntry<Written> {
  readonly messages: readonly Message[];
  readonly written: Written;
  readonly names: NameEntries;
  readonly ids: NameEntries;
}

/**
 * In characters. Longer results contain pictures or documents: caching these costs more than serializing them again.
 */
const maxCachedLength = 100_000;

/**
 * Caches serialized messages, because every request repeats the previous ones. A result lives as long as the last of
 * its messages, and is reused while its names and IDs map to the same values. Mutable messages are not cached.
 */
export const cachedSerializer = <Written>(
  write: Serializer<Written>,
  lengthOf: (written: Written) => number,
): Serializer<Written> => {
  const kept = new WeakMap<Message, CacheEntry<Written>>();
  return (messages, naming) => {
    const last = messages.at(-1);
    const known = last === undefined ? undefined : kept.get(last);
    if (known !== undefined && matches(known, messages, naming)) return known.written;
    const names = new Map<string, string>();
    const ids = new Map<string, string>();
    const written = write(messages, {
      ...naming,
      toolName: recording(naming.toolName, names),
      toolId: recording(naming.toolId, ids),
    });
    if (last !== undefined && messages.every(isFixed) && lengthOf(written) <= maxCachedLength) {
      const renamed = [...ids].filter(([id, wire]) => id !== wire);
      kept.set(last, { messages, written, names: [...names], ids: renamed });
    }
    return written;
  };
};

const matches = (
  known: CacheEntry<unknown>,
  messages: readonly Message[],
  { toolName, toolId }: WireNames,
): boolean =>
  known.messages.length === messages.length &&
  known.messages.every((message, index) => message === messages[index]) &&
  hasSameNames(known.names, toolName) &&
  hasSameNames(known.ids, toolId);

const hasSameNames = (called: NameEntries, toWire: (given: string) => string): boolean =>
  called.every(([given, wire]) => toWire(given) === wire);

const recording =
  (toWire: (given: string) => string, called: Map<string, string>) =>
  (given: string): string => {
    const wire = toWire(given);
    called.set(given, wire);
    return wire;
  };

/** Whether the parts of a message that a model gets are immutable. */
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
