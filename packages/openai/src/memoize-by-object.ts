/**
 * Makes a function that does its work once for each object, and keeps what came of it as long as the object is there.
 * An object is taken for what it is: one that changes is not looked at again.
 */
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
