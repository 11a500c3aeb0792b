import { openai } from '@millrace/openai';
import { createDevtools } from '@millrace/devtools';
import type { Adapter, Setup } from '../adapter.js';
import { apiKey } from '../lookup.js';
import { millraceWith } from './millrace-with.js';

const noop = (): void => undefined;

/** An agent in devtools, on a free port. */
export const inspected = (setup: Setup) => {
  const devtools = createDevtools({ enabled: true, port: 0, print: noop });
  const adapter = millraceWith(
    {
      modelOf: (name) => openai(name, { baseURL: setup.baseURL, apiKey, retry: false }),
      wrap: devtools.inspect,
    },
    setup,
  );
  return { adapter, devtools };
};

/** Millrace over chat completions, in devtools whose page is not open. */
export const open = (setup: Setup): Adapter => {
  const { adapter, devtools } = inspected(setup);
  return { ...adapter, close: devtools.close };
};
