export { calculator } from './calculator/calculator.js';
export { clock, type ClockOptions } from './clock/clock.js';
export { looksSecret } from './files/looks-secret.js';
export { readFile, type ReadFileOptions } from './files/read-file.js';
export { documentRetriever, type DocumentRetrieverOptions } from './retrieve/document-retriever.js';
export { keywordSelector, type KeywordSelectorOptions } from './select/keyword-selector.js';
export type { SearchDocument } from './search/document.js';
export { markdownFiles, type MarkdownFilesOptions } from './search/markdown-files.js';
export { searchDocuments, type SearchDocumentsOptions } from './search/search-documents.js';
