import { fnv1a, meantName } from 'millrace/values';

/** Maps tool names to the names that a vendor accepts, and back. */
export interface ToolNames {
  /** Returns the vendor's name of any tool. */
  toWire(name: string): string;
  /** Returns the original name; a name that was never sent stays the same. */
  fromWire(name: string): string;
}

const maxLength = 64;
const valid = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Maps tool names for a vendor that only accepts `[a-zA-Z0-9_-]{1,64}`: reversible, collision-free and deterministic.
 * Valid names stay the same. Any other name becomes its valid characters and a hash of the name, and so does a name in
 * `reserved`, which a built-in tool of the vendor has.
 */
export const toolNames = (
  names: readonly string[],
  reserved: readonly string[] = [],
): ToolNames => {
  const wireOf = new Map<string, string>();
  const nameOf = new Map<string, string>();
  const claim = (name: string): string => {
    const known = wireOf.get(name);
    if (known !== undefined) return known;
    const wire = freeName(name, (it) => nameOf.has(it) || reserved.includes(it));
    wireOf.set(name, wire);
    nameOf.set(wire, name);
    return wire;
  };
  names.filter((name) => valid.test(name)).forEach(claim);
  names.forEach(claim);
  // A conversation may call tools that no longer exist: they claim a name when they first occur.
  const isMapped = (wire: string): boolean => (nameOf.get(wire) ?? wire) !== wire;
  const isReserved = (name: string): boolean => reserved.includes(name) && !names.includes(name);
  return {
    toWire: (name) => (isReserved(name) ? name : claim(name)),
    // A model may put a namespace before a name that only the vendor has.
    fromWire: (name) => nameOf.get(name) ?? nameOf.get(meantName(name, isMapped)) ?? name,
  };
};

const freeName = (name: string, isTaken: (name: string) => boolean): string => {
  if (valid.test(name) && !isTaken(name)) return name;
  const base = name.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  for (let attempt = 0; ; attempt += 1) {
    const ending = `_${fnv1a(attempt === 0 ? name : `${name}#${attempt}`).toString(36)}`;
    const wire = base.slice(0, maxLength - ending.length) + ending;
    if (!isTaken(wire)) return wire;
  }
};
