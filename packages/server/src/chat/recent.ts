/** The latest ids, up to a number of them. */
export interface Recent {
  has(id: string): boolean;
  add(id: string): void;
  delete(id: string): void;
}

export const createRecent = (max: number): Recent => {
  /** In the order in which they were added. */
  const ids = new Set<string>();
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      ids.delete(id);
      ids.add(id);
      const [oldest] = ids;
      if (ids.size > max && oldest !== undefined) ids.delete(oldest);
    },
    delete: (id) => {
      ids.delete(id);
    },
  };
};
