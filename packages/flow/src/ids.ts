/** Excludes names such as `__proto__`, and characters with a meaning in templates. */
export const idPattern = '^[A-Za-z][A-Za-z0-9_:-]{0,63}$';

/** The names of variables, secrets and fields, which have no `-` and `:`. */
export const namePattern = '^[A-Za-z][A-Za-z0-9_]{0,63}$';

const id = new RegExp(idPattern, 'u');

export const isId = (text: string): boolean => id.test(text);

/** The pattern, in words. */
export const idRule =
  "a letter, then letters, digits, '_', '-' and ':', up to 64 characters in total";

/** The pattern of names, in words. */
export const nameRule = "a letter, then letters, digits and '_', up to 64 characters in total";
