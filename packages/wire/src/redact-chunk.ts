import { isRecord } from 'millrace/values';

/**
 * Redacts the strings and keys of a chunk. It searches the parsed chunk, not its JSON source: searching that would take
 * longer than parsing it, and a secret may be escaped there.
 */
export const redactChunk = <Chunk extends object>(
  chunk: Chunk,
  clean: (text: string) => string,
): Chunk => (isClean(chunk, clean) ? chunk : redactInPlace({ ...chunk }, clean));

/** The fast path: most chunks hold nothing but short strings. */
const isClean = (chunk: object, clean: (text: string) => string): boolean => {
  if (!isRecord(chunk)) return false;
  // `for in` allocates no list of entries, which would cost more than the search itself.
  for (const name in chunk) {
    const part = chunk[name];
    if (typeof part === 'string' ? clean(part) !== part : typeof part === 'object') return false;
  }
  return true;
};

/**
 * In place, since no one else holds the parsed value. Not recursive, because a hostile value would overflow the stack.
 */
const redactInPlace = <Value extends object>(
  value: Value,
  clean: (text: string) => string,
): Value => {
  const open: object[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, part] of Object.entries(next)) {
      const redacted: unknown = typeof part === 'string' ? clean(part) : part;
      const cleanName = clean(name);
      if (cleanName !== name) Reflect.deleteProperty(next, name);
      if (cleanName !== name || redacted !== part) put(next, cleanName, redacted);
      if (typeof redacted === 'object' && redacted !== null) open.push(redacted);
    }
  }
  return value;
};

/** Works for `__proto__` too. Throws if it cannot define the property, rather than show a secret. */
const put = (target: object, name: string, value: unknown): object =>
  Object.defineProperty(target, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
