import type { SendOptions } from '@millrace/wire';
import type { OpenAI } from 'openai';

/** Sends a serialized body. Without the content type, the SDK would serialize it again. */
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
