/** Values by keys, of which only those are kept that were used last. */
export interface Recent<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): Value;
}

/** Makes a place for so many values. */
export const createRecent = <Value>(most: number): Recent<Value> => {
  const values = new Map<string, Value>();
  const set = (key: string, value: Value): Value => {
    values.delete(key);
    values.set(key, value);
    for (const oldest of values.keys()) {
      if (values.size <= most) break;
      values.delete(oldest);
    }
    return value;
  };
  return {
    get: (key) => {
      const value = values.get(key);
      return value === undefined ? undefined : set(key, value);
    },
    set,
  };
};
