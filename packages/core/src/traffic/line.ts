/** Those who wait, in the order in which they came. Coming, going and leaving cost the same, however many wait. */
export interface Line<T> {
  readonly size: number;
  readonly first: T | undefined;
  /** Puts a value last. What it returns takes the value out again, wherever it then stands. */
  add(value: T): () => void;
}

export const createLine = <T>(): Line<T> => {
  let first: Place<T> | undefined;
  let last: Place<T> | undefined;
  let size = 0;
  const remove = (place: Place<T>): void => {
    if (!place.isTaken) return;
    place.isTaken = false;
    size -= 1;
    const { before, behind } = place;
    if (before === undefined) first = behind;
    else before.behind = behind;
    if (behind === undefined) last = before;
    else behind.before = before;
  };
  return {
    get size() {
      return size;
    },
    get first() {
      return first?.value;
    },
    add: (value) => {
      const place: Place<T> = { value, before: last, behind: undefined, isTaken: true };
      if (last === undefined) first = place;
      else last.behind = place;
      last = place;
      size += 1;
      return () => remove(place);
    },
  };
};

interface Place<T> {
  readonly value: T;
  before: Place<T> | undefined;
  behind: Place<T> | undefined;
  isTaken: boolean;
}
