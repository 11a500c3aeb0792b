/** Commands of LaTeX that a model writes with one backslash, and that JSON takes for an escape and a word. */
const commands =
  'nabla neq newline nmid nolimits nonumber notin nparallel nsubseteq rangle rceil rfloor rho right rightarrow rvert tanh tau tbinom text textbf textit textrm textsf texttt tfrac theta therefore tilde times triangle'.split(
    ' ',
  );

/** Those that are commands only within a formula: elsewhere a line may begin with what follows the escape. */
const commandsInFormulas = 'ne neg not nu rm tan to top'.split(' ');

/** Tells whether the backslash of an escape is itself, by the letters behind it: nobody writes a form feed or a backspace before a word. */
export const isLiteralBackslash = (escape: string, isFormula: boolean): boolean => {
  const name = escape.slice(1);
  if (name.length === 1) return false;
  if (/^[bf]/.test(name)) return true;
  return commands.includes(name) || (isFormula && commandsInFormulas.includes(name));
};

/** Tells whether a formula is open behind a character or an escape, in the marks of Markdown and LaTeX: two dollars are one mark. */
export const opensFormula = (mark: string, before: string, isOpen: boolean): boolean => {
  switch (mark) {
    case '$':
      return before === '$' ? isOpen : !isOpen;
    case '\\(':
    case '\\[':
      return true;
    case '\\)':
    case '\\]':
      return false;
    default:
      return isOpen;
  }
};

export const withDoubled = (text: string, places: readonly number[]): string => {
  let from = 0;
  const parts = places.map((place) => {
    const part = text.slice(from, place);
    from = place;
    return part;
  });
  return [...parts, text.slice(from)].join('\\');
};
