/** Memoizes a function by the identity of its argument, for the lifetime of that object. Mutations have no effect. */
export const memoizeByObject = <Key extends object, Made extends object>(
  make: (key: Key) => Made,
): ((key: Key) => Made) => {
  const known = new WeakMap<Key, Made>();
  return (key) => {
    const made = known.get(key) ?? make(key);
    known.set(key, made);
    return made;
  };
};
