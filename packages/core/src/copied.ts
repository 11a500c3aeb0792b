import { isPlain } from './frozen.js';

/** Copies plain data through and through, so that whoever gets it may do with it what he wants. What is more than data is shared: bytes, dates, instances of classes. */
export const copied = (value: unknown, copies = new Map<object, unknown>()): unknown => {
  if (!isPlain(value)) return value;
  const before = copies.get(value);
  if (before !== undefined) return before;
  if (Array.isArray(value)) {
    const list: unknown[] = [];
    copies.set(value, list);
    for (const item of value) list.push(copied(item, copies));
    return list;
  }
  const record: Record<string, unknown> = {};
  copies.set(value, record);
  for (const [key, item] of Object.entries(value)) {
    // An assignment to `__proto__` would change the prototype.
    Object.defineProperty(record, key, {
      value: copied(item, copies),
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
  return record;
};
