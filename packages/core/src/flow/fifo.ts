/** Values that wait, taken out in the order in which they came. */
export interface Fifo<T> {
  readonly size: number;
  push(value: T): void;
  /** Takes the next one out; `undefined` if nothing waits. */
  shift(): T | undefined;
}

/** Makes a list whose `shift` does not move what is behind it, as that of an array does. */
export const createFifo = <T>(): Fifo<T> => {
  let values: T[] = [];
  let first = 0;
  return {
    get size() {
      return values.length - first;
    },
    push: (value) => {
      values.push(value);
    },
    shift: () => {
      if (first === values.length) return undefined;
      const value = values[first];
      first += 1;
      if (first > values.length / 2) {
        values = values.slice(first);
        first = 0;
      }
      return value;
    },
  };
};
