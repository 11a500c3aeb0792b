import { XMLParser } from 'fast-xml-parser';
import { listAt, textAt, valueAt } from '../services/json.js';
import type { Source } from './sources.js';

/** The papers of an answer, or why it has no papers. */
export type Papers =
  | { readonly papers: readonly Source[] }
  | { readonly refused: string }
  | { readonly invalid: string };

export type PaperSource = 'arxiv' | 'pubmed';

const maxPapers = 5;

/** Characters of a field; a hostile answer is one long field. */
const maxField = 20_000;

/** Reads an answer. Hostile XML takes seconds: not for the main thread. */
export const papersIn = (source: PaperSource, xml: string): Papers => {
  try {
    const read = source === 'arxiv' ? arxivPapers(parsed(xml)) : pubmedPapers(parsed(xml));
    return 'papers' in read ? { papers: read.papers.map(cut) } : read;
  } catch {
    return { invalid: 'invalid XML' };
  }
};

const cut = ({ title, url, text, note }: Source): Source => ({
  title: title.slice(0, maxField),
  url: url.slice(0, maxField),
  text: text.slice(0, maxField),
  note: note.slice(0, maxField),
});

/** Attributes begin with `@`, and some elements are lists. Entities of a document are refused. */
const parsed = (xml: string): unknown => {
  if (/<!ENTITY/iu.test(xml)) throw new Error('The document defines entities.');
  const parser = new XMLParser({
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    parseTagValue: false,
    // Marks such as <i> within a title or an abstract.
    stopNodes: ['*.ArticleTitle', '*.AbstractText'],
    isArray: (name: string) => lists.has(name),
  });
  return parser.parse(xml);
};

const lists = new Set(['entry', 'author', 'PubmedArticle', 'Author', 'AbstractText', 'ArticleId']);

/** The text of an element, with or without attributes. */
const contentOf = (element: unknown): string =>
  typeof element === 'string' ? element : textAt(element, '#text');

const authorsOf = (names: readonly string[]): string =>
  names.length > 3
    ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more`
    : names.join(', ');

// ---------------------------------------------------------------- arXiv

const arxivPapers = (feed: unknown): Papers => {
  if (valueAt(feed, 'feed') === undefined) return { invalid: 'something other than a feed' };
  const entries = listAt(feed, 'feed', 'entry');
  const refused = entries.find((entry) => textAt(entry, 'id').includes('/api/errors'));
  if (refused !== undefined) return { refused: contentOf(valueAt(refused, 'summary')) };
  const papers = entries.slice(0, maxPapers).map((entry) => {
    const id = textAt(entry, 'id');
    const summary = contentOf(valueAt(entry, 'summary'));
    const authors = authorsOf(listAt(entry, 'author').map((author) => textAt(author, 'name')));
    const category = textAt(entry, 'arxiv:primary_category', '@term');
    return {
      title: contentOf(valueAt(entry, 'title')),
      url: id.replace(/^http:/u, 'https:'),
      text: summary,
      note: [authors, textAt(entry, 'published').slice(0, 10), category].filter(Boolean).join('; '),
    };
  });
  return { papers };
};

// ---------------------------------------------------------------- PubMed

const pubmedPapers = (json: unknown): Papers => {
  if (valueAt(json, 'PubmedArticleSet') === undefined) {
    return { invalid: 'something other than papers' };
  }
  const articles = listAt(json, 'PubmedArticleSet', 'PubmedArticle').slice(0, maxPapers);
  const papers = articles.map((paper) => {
    const citation = valueAt(paper, 'MedlineCitation');
    const article = valueAt(citation, 'Article');
    const date = valueAt(article, 'Journal', 'JournalIssue', 'PubDate');
    const authors = listAt(article, 'AuthorList', 'Author').map(
      (author) =>
        textAt(author, 'CollectiveName') ||
        `${textAt(author, 'LastName')} ${textAt(author, 'Initials')}`.trim(),
    );
    const doi = listAt(paper, 'PubmedData', 'ArticleIdList', 'ArticleId').find(
      (id) => textAt(id, '@IdType') === 'doi',
    );
    const note = [
      authorsOf(authors),
      textAt(article, 'Journal', 'Title'),
      textAt(date, 'Year') || textAt(date, 'MedlineDate'),
      doi === undefined ? '' : `doi:${contentOf(doi)}`,
    ];
    return {
      title: contentOf(valueAt(article, 'ArticleTitle')),
      url: `https://pubmed.ncbi.nlm.nih.gov/${contentOf(valueAt(citation, 'PMID'))}/`,
      text: listAt(article, 'Abstract', 'AbstractText').map(labelled).join(' '),
      note: note.filter((part) => part !== '').join('; '),
    };
  });
  return { papers };
};

/** Parts of an abstract have labels: `METHODS: …`. */
const labelled = (part: unknown): string => {
  const label = textAt(part, '@Label');
  return label === '' ? contentOf(part) : `${label}: ${contentOf(part)}`;
};
