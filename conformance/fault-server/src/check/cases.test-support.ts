/** What is wrong, what it changes in a good body, and the words of the vendor. */
export type Case = readonly [
  what: string,
  change: Readonly<Record<string, unknown>>,
  words: string,
];

/** The headers of a body that is JSON. */
export const jsonHeaders = { 'content-type': 'application/json' };

/** Changes a body. A field that becomes undefined is gone, as in JSON. */
export const changed = (body: object, change: object): unknown => ({ ...body, ...change });
