import type { SendOptions } from '@millrace/wire';
import type { OpenAI } from 'openai';

/** Sends a body that is JSON already. The client would write anew what it is not told the type of. */
export const post = (
  sdk: OpenAI,
  path: string,
  body: string,
  { signal, headers }: SendOptions,
): Promise<Response> =>
  sdk
    .post(path, {
      body,
      headers: { ...headers, 'content-type': 'application/json' },
      signal,
      stream: true,
    })
    .asResponse();
