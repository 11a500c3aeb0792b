/** Limits of a document, so that one from an untrusted source cannot block the process. */
export const limits = {
  /** Components, including those inside iterations and loops. */
  components: 100,
  nesting: 3,
  /** Rounds of a loop. */
  rounds: 100,
  variables: 100,
  values: 20_000,
  /** Items of one list. */
  list: 1_000,
  /** Nested lists and objects. */
  depth: 40,
  /** Characters of all strings and keys. */
  characters: 1_000_000,
} as const;
