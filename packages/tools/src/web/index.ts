// Tools for the web.
export { fetchPage, type FetchPageOptions } from './fetch-page.js';
