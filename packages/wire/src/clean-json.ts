import { parsedJson } from '@millrace/core/adapter';

/** What may be written so although it need not be hides a secret from a search of the text. */
const hiding = /\\[/u]/u;

/**
 * Parses a JSON text, and cleans the texts and names in it. Not before it is parsed, where that could break it.
 * `undefined` where the text is none.
 */
export const cleanJson = (text: string, clean: (text: string) => string): unknown => {
  const value = parsedJson(text);
  return hiding.test(text) || clean(text) !== text ? cleaned(value, clean) : value;
};

/** In place, since nobody else has the value; without recursion, which a hostile one would exhaust. */
const cleaned = (value: unknown, clean: (text: string) => string): unknown => {
  const root = { value };
  const open: object[] = [root];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [name, part] of Object.entries(next)) {
      const fitting: unknown = typeof part === 'string' ? clean(part) : part;
      const cleanName = clean(name);
      if (cleanName !== name) Reflect.deleteProperty(next, name);
      if (cleanName !== name || fitting !== part) put(next, cleanName, fitting);
      if (typeof fitting === 'object' && fitting !== null) open.push(fitting);
    }
  }
  return root.value;
};

/** Also where the name is `__proto__`. */
const put = (target: object, name: string, value: unknown): boolean =>
  Reflect.defineProperty(target, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
