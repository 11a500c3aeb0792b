import { misuse } from './errors.js';

type Named = (...given: never) => unknown;

/** Functions that change a list of named functions. Each is made under the name that its errors have. */
export interface ListEditing<Part extends Named> {
  readonly insertBefore: (owner: string) => InsertPart<Part>;
  readonly insertAfter: (owner: string) => InsertPart<Part>;
  readonly replace: (owner: string) => InsertPart<Part>;
  readonly without: (owner: string) => (dropped: Part, parts?: readonly Part[]) => readonly Part[];
}

/** Changes a list at the place of one of its parts. */
export type InsertPart<Part> = (
  place: Part,
  added: Part,
  parts?: readonly Part[],
) => readonly Part[];

/** Makes the functions that change a list of such parts: the native one, where none is given. */
export const listEditing = <Part extends Named>(
  what: string,
  native: readonly Part[],
): ListEditing<Part> => {
  const placeOf = (place: Part, parts: readonly Part[], owner: string): number => {
    const index = parts.indexOf(place);
    if (index !== -1) return index;
    throw misuse(
      `${owner}(): the list has no such ${what}. It has: ${parts.map(({ name }) => name || 'one without a name').join(', ')}.`,
    );
  };
  return {
    insertBefore:
      (owner) =>
      (place, added, parts = native) =>
        parts.toSpliced(placeOf(place, parts, owner), 0, added),
    insertAfter:
      (owner) =>
      (place, added, parts = native) =>
        parts.toSpliced(placeOf(place, parts, owner) + 1, 0, added),
    replace:
      (owner) =>
      (place, added, parts = native) => {
        placeOf(place, parts, owner);
        return parts.map((each) => (each === place ? added : each));
      },
    without:
      (owner) =>
      (dropped, parts = native) => {
        placeOf(dropped, parts, owner);
        return parts.filter((each) => each !== dropped);
      },
  };
};
