/** Memoizes the last result of a function of a string. */
export const memoizeLast = <Made>(make: (text: string) => Made): ((text: string) => Made) => {
  let last: { readonly text: string; readonly made: Made } | undefined;
  return (text) => {
    if (last?.text !== text) last = { text, made: make(text) };
    return last.made;
  };
};
