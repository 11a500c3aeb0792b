/** What an id looks like: nothing that means a prototype, and nothing that a template could be misread by. */
export const idPattern = '^[A-Za-z][A-Za-z0-9_:-]{0,63}$';

const id = new RegExp(idPattern, 'u');

/** Tells whether a text can be an id. */
export const isId = (text: string): boolean => id.test(text);

/** What an id must be, in words. */
export const idRule = "a letter, then letters, digits, '_', '-' and ':', at most 64 in all";
