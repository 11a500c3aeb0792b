import { openai } from '@millrace/openai';
import { nodeFetch } from '@millrace/wire';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

/** Millrace over chat completions, with the transport over `node:http` in place of the global `fetch`. */
export const open = (setup: Setup): Adapter => {
  const { baseUrl } = setup;
  const fetch = nodeFetch();
  return millraceWith(
    { modelOf: (name) => openai(name, { baseUrl, apiKey, retry: false, fetch }) },
    setup,
  );
};
