import { on, transformChunks } from 'millrace';
import { openai } from '@millrace/openai';
import { map, noop, tap } from 'rxjs';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

/** Millrace over chat completions, with three interceptors that edit tool uses, look at messages and make each chunk anew. */
export const open = (setup: Setup): Adapter => {
  const interceptors = [
    on(
      'preActing',
      map((event) => ({ ...event, toolCall: { ...event.toolCall } })),
    ),
    on('postReasoning', tap(noop)),
    transformChunks(map((chunk) => ({ ...chunk }))),
  ];
  return millraceWith(
    {
      modelOf: (name) => openai(name, { baseURL: setup.baseURL, apiKey, retry: false }),
      interceptors,
    },
    setup,
  );
};
