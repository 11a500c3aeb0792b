export interface Size {
  /** Approximate length of its JSON, in characters. */
  readonly length: number;
  /** Levels of objects and arrays. */
  readonly depth: number;
}

/** Measures a parsed JSON value. Not recursive, because a hostile value would overflow the stack. */
export const measure = (value: unknown): Size => {
  const open: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  let length = 0;
  let depth = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: part } = next;
    length += typeof part === 'string' ? part.length + 2 : 1;
    if (typeof part !== 'object' || part === null) continue;
    const inside = next.depth + 1;
    depth = Math.max(depth, inside);
    for (const [key, child] of Object.entries(part)) {
      length += key.length + 1;
      open.push({ value: child, depth: inside });
    }
  }
  return { length, depth };
};

const quote = 34;
const backslash = 92;
const opener = 123;
const closer = 125;
/** Makes a brace of a bracket. */
const bracketBit = 32;

/**
 * Creates a function that takes JSON in chunks and returns the deepest nesting so far. It counts brackets outside of
 * strings and does not validate.
 */
export const createNesting = (): ((json: string) => number) => {
  let level = 0;
  let deepest = 0;
  let inString = false;
  let escaped = false;
  return (json) => {
    for (let at = 0; at < json.length; at += 1) {
      const code = json.charCodeAt(at);
      if (escaped) escaped = false;
      else if (code === quote) inString = !inString;
      else if (inString) escaped = code === backslash;
      else if ((code | bracketBit) === opener) deepest = Math.max(deepest, (level += 1));
      else if ((code | bracketBit) === closer) level -= 1;
    }
    return deepest;
  };
};
