/** Makes a function that does its work once for all the same texts in a row. */
export const memoizeLast = <Made>(make: (text: string) => Made): ((text: string) => Made) => {
  let last: { readonly text: string; readonly made: Made } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, made: make(text) };
    return last.made;
  };
};
