// Tools that search the web, Wikipedia and scientific papers.
export type { ServiceOptions } from '../services/service.js';
export { arxiv, pubmed, type PubmedOptions } from './papers.js';
export type { Source } from './sources.js';
export { webSearch, type WebSearchOptions } from './web-search.js';
export { wikipedia, type WikipediaOptions } from './wikipedia.js';
