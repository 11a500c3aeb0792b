import { openai } from '@millrace/openai';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

/** Millrace over chat completions, with the transport over `node:http` in place of the global `fetch`. */
export const open = (setup: Setup): Adapter =>
  millraceWith(
    {
      modelOf: (name) =>
        openai(name, { baseUrl: setup.baseUrl, apiKey, retry: false, ...transport }),
    },
    setup,
  );

// The one line to change: `{ fetch: … }` of the leaner transport.
const transport = {};
