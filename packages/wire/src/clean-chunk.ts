import { isRecord } from '@millrace/core/adapter';

/**
 * Takes the secrets out of the texts and names in a piece of an answer. It is the piece that is searched, and not the
 * JSON that it was read from: that would take longer than to parse it, and a secret may be escaped there.
 */
export const cleanChunk = <Chunk extends object>(
  chunk: Chunk,
  clean: (text: string) => string,
): Chunk => (isClean(chunk, clean) ? chunk : cleaned({ ...chunk }, clean));

/** Most pieces hold nothing but short texts. */
const isClean = (chunk: object, clean: (text: string) => string): boolean => {
  if (!isRecord(chunk)) return false;
  // Makes no list of what it looks at, which would cost more than looking.
  for (const name in chunk) {
    const part = chunk[name];
    if (typeof part === 'string' ? clean(part) !== part : typeof part === 'object') return false;
  }
  return true;
};

/** In place, since nobody else has what was parsed; without recursion, which a hostile value would exhaust. */
const cleaned = <Value extends object>(value: Value, clean: (text: string) => string): Value => {
  const open: object[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, part] of Object.entries(next)) {
      const fitting: unknown = typeof part === 'string' ? clean(part) : part;
      const cleanName = clean(name);
      if (cleanName !== name) Reflect.deleteProperty(next, name);
      if (cleanName !== name || fitting !== part) put(next, cleanName, fitting);
      if (typeof fitting === 'object' && fitting !== null) open.push(fitting);
    }
  }
  return value;
};

/** Also where the name is `__proto__`. Throws where it cannot be put: what is not clean must not be shown. */
const put = (target: object, name: string, value: unknown): object =>
  Object.defineProperty(target, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
