export interface Queue<T> {
  readonly size: number;
  push(value: T): void;
  /** Takes the next one out; `undefined` where nothing waits. */
  shift(): T | undefined;
}

/** Makes a queue whose `shift` does not move what is behind it, as that of an array does. */
export const createQueue = <T>(): Queue<T> => {
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
