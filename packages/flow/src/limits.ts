/** How large a document may be, so that one from outside cannot keep the process busy. */
export const limits = {
  /** Components, those of iterations included. */
  components: 100,
  /** Iterations within iterations. */
  nesting: 3,
  /** Values of any kind. */
  values: 20_000,
  /** Items of one list. */
  list: 1_000,
  /** Lists and objects in one another. */
  depth: 40,
  /** Characters of all texts and keys. */
  characters: 1_000_000,
} as const;
