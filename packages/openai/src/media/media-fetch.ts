import { isRecord, parsedJson } from 'millrace/values';
import { fromBase64, toBase64 } from './base64.js';

/** A file in the JSON of a request, which is sent as a part of a form. */
export interface Upload {
  readonly name: string;
  readonly mediaType: string;
  readonly data: string;
}

/**
 * Adapts a `fetch` to exchanges of JSON. A request with a `file` becomes a form, and binary data in the response becomes
 * `{ mediaType, data }` while it streams, so that both have the caps, retries, redaction and cancellation of any request.
 */
export const mediaFetch =
  (fetch: typeof globalThis.fetch | undefined): typeof globalThis.fetch =>
  (url, init = {}) =>
    // The fields of `init` that are not enumerable count too, so it is not copied.
    (fetch ?? globalThis.fetch)(url, withForm(init)).then(inJson);

const withForm = (init: RequestInit): RequestInit => {
  const fields = typeof init.body === 'string' ? parsedJson(init.body) : undefined;
  if (!isRecord(fields)) return init;
  const { file, ...others } = fields;
  if (!isUpload(file)) return init;
  const form = new FormData();
  for (const [name, value] of Object.entries(others)) append(form, name, value);
  const { name, mediaType: type, data } = file;
  form.append('file', new Blob([fromBase64(data)], { type }), name);
  const headers = new Headers(init.headers);
  // With the boundary, which `fetch` adds.
  headers.delete('content-type');
  return Object.assign(init, { body: form, headers });
};

/** Appends a value as the SDK of OpenAI does: lists as `name[]`, also if they have that name, objects as `name[key]`. */
const append = (form: FormData, name: string, value: unknown): void => {
  if (isRecord(value) || Array.isArray(value)) {
    for (const [key, one] of Object.entries(value)) {
      append(form, `${name}[${isRecord(value) ? key : ''}]`, one);
    }
  } else form.append(name.replace('[][]', '[]'), String(value));
};

const isUpload = (file: unknown): file is Upload =>
  isRecord(file) &&
  [file['name'], file['mediaType'], file['data']].every((it) => typeof it === 'string');

const inJson = (response: Response): Response => {
  const { status, headers, body } = response;
  const type = headers.get('content-type') ?? '';
  if (!response.ok || body === null || !binary.test(type)) return response;
  return new Response(body.pipeThrough(encoder(type)), { status, headers });
};

const binary = /^(?:audio\/|image\/|video\/|application\/octet-stream)/iu;

/** Encodes in groups of three bytes, which need no padding before the end. */
const encoder = (mediaType: string): TransformStream<Uint8Array, Uint8Array> => {
  const utf8 = new TextEncoder();
  let rest = new Uint8Array();
  return new TransformStream({
    start: (controller) => {
      controller.enqueue(utf8.encode(`{"mediaType":${JSON.stringify(mediaType)},"data":"`));
    },
    transform: (chunk, controller) => {
      const bytes = new Uint8Array(rest.length + chunk.length);
      bytes.set(rest);
      bytes.set(chunk, rest.length);
      const end = bytes.length - (bytes.length % 3);
      rest = bytes.slice(end);
      if (end > 0) controller.enqueue(utf8.encode(toBase64(bytes.subarray(0, end))));
    },
    flush: (controller) => {
      controller.enqueue(utf8.encode(`${toBase64(rest)}"}`));
    },
  });
};
