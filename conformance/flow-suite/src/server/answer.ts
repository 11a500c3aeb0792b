/**
 * What a server answers the first request at an address with; all further ones get a short answer.
 *
 * - `short`: a few words.
 * - `long`: so many deltas of so many bytes, as fast as the socket takes them.
 * - `drip`: a word every few milliseconds, until the client leaves.
 * - `toolCall`: a use of the tool `wait`.
 */
export type Answer =
  | { readonly type: 'short' | 'drip' | 'toolCall' }
  | { readonly type: 'long'; readonly deltas: number; readonly bytes: number };

/** Writes an answer as a part of a path. */
export const toPath = (answer: Answer): string =>
  answer.type === 'long' ? `long-${answer.deltas}-${answer.bytes}` : answer.type;

/** Reads what `toPath` wrote. */
export const fromPath = (path: string): Answer => {
  const [type, deltas, bytes] = path.split('-');
  switch (type) {
    case 'long':
      return { type, deltas: Number(deltas), bytes: Number(bytes) };
    case 'drip':
    case 'toolCall':
      return { type };
    default:
      return { type: 'short' };
  }
};
