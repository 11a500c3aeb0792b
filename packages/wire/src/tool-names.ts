/** The names of tools, both ways. */
export interface ToolNames {
  /** The name that the vendor gets: any name has one. */
  toWire(name: string): string;
  /** The name behind one that the vendor sends; one that was never sent stays as it is. */
  fromWire(name: string): string;
}

const longest = 64;
const valid = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * Maps tool names for a vendor that takes only `[a-zA-Z0-9_-]{1,64}`: reversibly, without collisions, and the
 * same for the same list. Valid names stay; any other becomes what is valid of it with a hash of the whole, and so
 * does one of ours that is `reserved`, because a tool of the vendor has it.
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
  // A conversation may use tools that are no longer there: they claim a name when they come up.
  const isReserved = (name: string): boolean => reserved.includes(name) && !names.includes(name);
  return {
    toWire: (name) => (isReserved(name) ? name : claim(name)),
    fromWire: (name) => nameOf.get(name) ?? name,
  };
};

const freeName = (name: string, isTaken: (name: string) => boolean): string => {
  if (valid.test(name) && !isTaken(name)) return name;
  const begun = name.replaceAll(/[^a-zA-Z0-9_-]/g, '_');
  for (let attempt = 0; ; attempt += 1) {
    const ending = `_${hashOf(attempt === 0 ? name : `${name}#${attempt}`)}`;
    const wire = begun.slice(0, longest - ending.length) + ending;
    if (!isTaken(wire)) return wire;
  }
};

/** FNV-1a, 32 bits. */
const hashOf = (text: string): string =>
  (
    new TextEncoder()
      .encode(text)
      .reduce((hash, byte) => Math.imul(hash ^ byte, 0x01000193), 0x811c9dc5) >>> 0
  ).toString(36);
