/**
 * Freezes plain data through and through, and gives it back. What is frozen already is passed over with all that is in
 * it, and so is whatever is more than data: bytes, dates, instances of classes.
 */
export const frozen = <T>(value: T): T => {
  if (!isPlain(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
};

/** Tells plain data from all else. Also of another realm, whose `Object` is not ours. */
export const isPlain = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
};
