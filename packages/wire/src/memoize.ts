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
