/** A table of words, for search. Its tokens are those that `token` makes, with any character in a word. */
export const wordTable = (name: string, ...columns: readonly string[]): readonly string[] => [
  // Contains the words alone: https://sqlite.org/fts5.html#contentless_delete_tables
  `create virtual table ${name} using fts5 (
    ${columns.join(', ')}, content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'"
  )`,
  // Where each word is: https://sqlite.org/fts5.html#the_fts5vocab_virtual_table_module
  `create virtual table ${name}_places using fts5vocab (${name}, instance)`,
];

/**
 * A word as a token of the group that is searched as a whole, such as a user. Escapes what would end a token: the
 * compatibility forms of a letter or number can contain spaces and punctuation, and SQLite ignores the case of ASCII.
 */
export const token = (group: number, word: string): string =>
  `${group}_${word.replace(/[^a-z0-9\u0080-\uffff]/g, escaped)}`;

const escaped = (unit: string): string => `_${unit.charCodeAt(0).toString(16)}_`;

/** The tokens of words as JSON. */
export const tokensOf = (group: number, words: readonly string[]): string =>
  JSON.stringify(words.map((word) => token(group, word)));
