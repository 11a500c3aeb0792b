/** Tells whether a value holds more than so many others, at whatever depth, without looking at more than that. What stands in many places counts in each: a copy has it there. */
export const holdsMore = (value: unknown, most: number): boolean => {
  const open: object[] = isObject(value) ? [value] : [];
  let left = most;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // A list may say that it is longer than it is.
    if (Array.isArray(next) && next.length > left) return true;
    const held: readonly unknown[] = Object.values(next);
    left -= held.length;
    if (left < 0) return true;
    for (const part of held) if (isObject(part)) open.push(part);
  }
  return false;
};

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
