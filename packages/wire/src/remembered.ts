/** How many results are remembered: more than there are at a time. */
const most = 100;

/** Gives a function that remembers what it made of a text. It forgets all when that is too much, so that it never grows. */
export const remembered = <Made extends object>(
  make: (text: string) => Made,
): ((text: string) => Made) => {
  const known = new Map<string, Made>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (known.size >= most) known.clear();
    known.set(text, made);
    return made;
  };
};
