import type { Embedder } from 'millrace';
import { checkOptions, having, numberFrom, type Rule } from 'millrace/values';

/** Options of the long-term memory of a store. */
export interface StoredMemoryOptions {
  /** Enables semantic search. Use the same one for the life of a store. Default: none, entries are found by keyword. */
  readonly embedder?: Embedder | undefined;
  /** Minimum cosine similarity of query and entry in semantic search, from 0 to 1. Default: 0.3. */
  readonly threshold?: number | undefined;
  /**
   * The Postgres text search configuration that stems words, such as `german`. Default: none, words are found in their
   * English forms, as in the in-process memory.
   */
  readonly language?: string | undefined;
}

const embedderRules = {
  embedder: having('embed$', 'an embedder with embed$()'),
  threshold: numberFrom(0),
} satisfies Readonly<Record<string, Rule>>;

const rules: Readonly<Record<keyof StoredMemoryOptions, Rule>> = {
  ...embedderRules,
  language: [
    (value) => typeof value === 'string' && /^[a-z_]{1,60}$/.test(value),
    "a Postgres text search configuration, such as 'german'",
  ],
};

const followed = (known: Readonly<Record<string, Rule>>): Rule => [
  (value) => {
    checkOptions("'longTermMemory'", value, known);
    return true;
  },
  'options of a long-term memory',
];

export const isMemoryOptions = followed(rules);

/** Only Postgres has stemmers for languages. */
export const isSqliteMemoryOptions = followed(embedderRules);
