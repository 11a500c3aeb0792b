/** More than are in use at the same time. */
const maxEntries = 100;

/** Memoizes a function of a string. The cache is cleared when it is full. */
export const memoize = <Made extends object>(
  make: (text: string) => Made,
): ((text: string) => Made) => {
  const known = new Map<string, Made>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (known.size >= maxEntries) known.clear();
    known.set(text, made);
    return made;
  };
};

/** Memoizes the last result of a function of a string. */
export const memoizeLast = <Made>(make: (text: string) => Made): ((text: string) => Made) => {
  let last: { readonly text: string; readonly made: Made } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, made: make(text) };
    return last.made;
  };
};

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
