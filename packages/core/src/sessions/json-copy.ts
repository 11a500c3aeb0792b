/** Copies a value as JSON would, without keys that reach a prototype; `undefined` where JSON has no word for it. Throws where it holds itself. */
export const jsonCopy = (value: unknown): unknown => {
  const text: unknown = JSON.stringify(value, (key, part: unknown) =>
    key === '__proto__' ? undefined : part,
  );
  return typeof text === 'string' ? JSON.parse(text) : undefined;
};
