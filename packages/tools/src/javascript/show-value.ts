/**
 * Shows a value as text of about `limit` characters or less: a string as it is, other values as in source code.
 *
 * The sandbox evaluates the source of this function, so it uses nothing from outside of itself. Values may be hostile:
 * getters and proxies run here, inside the sandbox.
 */
export const showValue = (value: unknown, limit: number): string => {
  let left = limit;
  const taken = (text: string): string => {
    const part = text.length > left ? `${text.slice(0, Math.max(0, left))}…` : text;
    left -= part.length + 2;
    return part;
  };
  const textOfError = (error: Error): string => {
    const frames = String(error.stack)
      .split('\n')
      .filter((line) => line.includes('code.js'))
      .slice(0, 5);
    const inner: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
    const causes = [...inner.slice(0, 5), error.cause]
      .filter((cause) => cause !== undefined && cause !== error)
      .map((cause) => `caused by ${causeText(cause)}`);
    return [`${error.name}: ${error.message}`, ...frames, ...causes].join('\n');
  };
  const causeText = (cause: unknown): string =>
    cause instanceof Error ? `${cause.name}: ${cause.message}` : textOf(cause, []);
  const list = (open: string, close: string, total: number, items: Iterable<string>): string => {
    const parts: string[] = [];
    for (const item of items) {
      parts.push(item);
      if (left <= 0 || parts.length >= 100) break;
    }
    const rest = total - parts.length;
    const all = rest > 0 ? [...parts, `… ${rest} more`] : parts;
    return all.length === 0 ? open + close : `${open} ${all.join(', ')} ${close}`;
  };
  const nameOf = (key: string): string =>
    /^[A-Za-z_$][\w$]*$/u.test(key) ? taken(key) : JSON.stringify(taken(key));
  const textOfObject = (object: object, above: readonly object[]): string => {
    if (above.includes(object)) return taken('[circular]');
    const inside = [...above, object];
    const show = (it: unknown): string => textOf(it, inside);
    if (object instanceof Error) return taken(textOfError(object));
    if (object instanceof Promise) return taken('[promise that is not awaited]');
    if (object instanceof RegExp) return taken(String(object));
    if (object instanceof Date)
      return taken(isNaN(+object) ? 'Invalid Date' : object.toISOString());
    if (inside.length > 6) return taken(Array.isArray(object) ? '[…]' : '{…}');
    if (object instanceof Map) {
      const entries = (function* () {
        for (const [key, item] of object) yield `${show(key)} => ${show(item)}`;
      })();
      return list('Map {', '}', object.size, entries);
    }
    if (Array.isArray(object) || object instanceof Set || ArrayBuffer.isView(object)) {
      const isArray = Array.isArray(object);
      const shown = (function* () {
        if (Symbol.iterator in object) for (const item of object) yield show(item);
      })();
      const size = 'size' in object ? object.size : Number(Reflect.get(object, 'length') ?? 0);
      return list(isArray ? '[' : `${object.constructor.name} {`, isArray ? ']' : '}', size, shown);
    }
    const keys = Object.keys(object);
    const fields = (function* () {
      for (const key of keys) yield `${nameOf(key)}: ${show(Reflect.get(object, key))}`;
    })();
    return list('{', '}', keys.length, fields);
  };
  const textOf = (it: unknown, above: readonly object[]): string => {
    switch (typeof it) {
      case 'string':
        return above.length === 0 ? taken(it) : JSON.stringify(taken(it));
      case 'bigint':
        return taken(`${it}n`);
      case 'function':
        return taken(`[function ${it.name}]`);
      case 'object':
        return it === null ? taken('null') : textOfObject(it, above);
      default:
        return taken(String(it));
    }
  };
  try {
    return textOf(value, []);
  } catch (error) {
    return `(This value cannot be shown: ${typeof error === 'object' ? 'an error' : typeof error} was thrown.)`;
  }
};
