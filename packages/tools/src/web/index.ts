// Tools for the web.
export { fetchPage, type FetchPageOptions } from './fetch-page.js';
export {
  guardedFetch,
  type GuardedFetchOptions,
  type GuardedRequest,
  type GuardedResponse,
} from './guarded-fetch.js';
