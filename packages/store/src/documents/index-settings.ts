import { MillraceError } from 'millrace';
import type { DocumentTables, IndexRow } from './document-tables.js';
import type { IndexEmbedder } from './embed-texts.js';

/** The options that decide what is stored. */
export interface Settings {
  readonly name: string;
  readonly embedder: IndexEmbedder | undefined;
  readonly language: string | undefined;
}

/** Finds or makes the index to add to. */
export const openIndex = async (tables: DocumentTables, settings: Settings): Promise<IndexRow> => {
  const made = await tables.make();
  checkSettings(settings, made);
  const { name, embedder } = settings;
  if (embedder === undefined) {
    if (made.dimensions === undefined) return made;
    throw differs(name, `the embedder '${String(made.embedder)}'`, 'none');
  }
  if (!made.hasVectors) {
    throw new MillraceError(
      'config',
      `The index '${name}' has an embedder, but the database has no pgvector. Install the extension, or open the index without an embedder.`,
    );
  }
  const index = await tables.setEmbedder(made, embedder.id);
  checkSettings(settings, index);
  return index;
};

/** Results of another embedder or language would be wrong without a sign. */
export const checkSettings = ({ name, embedder, language }: Settings, index: IndexRow): void => {
  if (index.language !== language) {
    throw differs(name, languageOf(index.language), languageOf(language));
  }
  // An embedder that never returned a vector does not count: its name may be wrong.
  if (index.dimensions === undefined || embedder === undefined) return;
  if (index.embedder !== embedder.id) {
    throw differs(name, `the embedder '${String(index.embedder)}'`, `'${embedder.id}'`);
  }
};

const languageOf = (language: string | undefined): string =>
  language === undefined ? 'no language' : `the language '${language}'`;

export const differs = (name: string, stored: string, given: string): MillraceError =>
  new MillraceError(
    'config',
    `The index '${name}' has ${stored}, not ${given}. Open it with its original settings, use another name, or remove it with remove$('all').`,
  );
