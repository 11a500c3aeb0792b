import { anthropic } from '@millrace/anthropic';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

/** Millrace over Anthropic's messages. */
export const open = (setup: Setup): Adapter =>
  millraceWith(
    { modelOf: (name) => anthropic(name, { baseURL: setup.baseURL, apiKey, retry: false }) },
    setup,
  );
