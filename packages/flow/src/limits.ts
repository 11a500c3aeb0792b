/** Limits of a document and of its calls, so that one from an untrusted source cannot block or fill the process. */
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
  /** The longest delay of a timer, in milliseconds. */
  delay: 2 ** 31 - 1,
  /** Characters of all strings and keys. */
  characters: 1_000_000,
  /** Characters of text that a call composes, and of a value as JSON. */
  text: 5_000_000,
  /** Bytes of a response, and characters of the output of a tool. */
  response: 100_000_000,
  /** Characters of all outputs of a loop or an iteration. */
  outputs: 20_000_000,
} as const;
