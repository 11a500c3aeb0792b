export interface Fifo<T> {
  readonly size: number;
  push(value: T): void;
  shift(): T | undefined;
}

/** Creates a list with a `shift` in constant time, unlike that of an array. */
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
