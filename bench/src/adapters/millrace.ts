import { openai } from '@millrace/openai';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

/** Millrace over chat completions, as it comes. */
export const open = (setup: Setup): Adapter =>
  millraceWith(
    { modelOf: (name) => openai(name, { baseURL: setup.baseURL, apiKey, retry: false }) },
    setup,
  );
