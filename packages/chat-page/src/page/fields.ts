/** The fields of a value that is an object. */
export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
export const fieldsOf = (value: unknown): Fields => (isFields(value) ? value : {});
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** `first_name` and `firstName` as words: people read no names of code. What has spaces is no such name. */
export const wordsOf = (name: string): string => {
  if (/\s/u.test(name)) return name;
  const words = name
    .replaceAll(/([a-z\d])([A-Z])/gu, '$1 $2')
    .replaceAll(/[_-]+/gu, ' ')
    .trim()
    .toLowerCase();
  return words === '' ? name : words.slice(0, 1).toUpperCase() + words.slice(1);
};

/** The view that a tool has chosen for its result: data with a `view`. */
export const viewOf = (output: unknown): string => textOf(fieldsOf(output)['view']);

/** `{ name: value }`, or nothing if the value is no string. */
export const optional = <Name extends string>(
  name: Name,
  value: unknown,
): Partial<Readonly<Record<Name, string>>> =>
  // A computed key widens to `string`.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  (typeof value === 'string' ? { [name]: value } : {}) as Partial<Readonly<Record<Name, string>>>;

/** The value of JSON, or a problem for the user. */
export const parsedJson = (
  text: string,
): { readonly value: unknown } | { readonly problem: string } => {
  try {
    const value: unknown = JSON.parse(text);
    return { value };
  } catch {
    return { problem: 'This is not valid JSON. Text needs quotation marks.' };
  }
};
