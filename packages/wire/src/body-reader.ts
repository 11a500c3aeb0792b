/** Reads the body of a response. */
export interface BodyReader {
  /** Returns the bytes that have arrived since the last read, or waits for some. Rejects if the connection breaks. */
  read(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Discards the rest of the body, even while a `read` is pending. */
  cancel(): Promise<unknown>;
}

/**
 * The key of an optional method of a `Response` that returns a cheaper reader of the body than its web stream. It locks
 * the body as `getReader` does.
 */
export const bodyReader = Symbol.for('millrace.bodyReader');

/** Returns the cheapest reader of the body of a response; `undefined` if there is no body. */
export const readerOf = (response: Response): BodyReader | undefined => {
  if (offersReader(response)) return response[bodyReader]();
  // An older `fetch` may leave it undefined.
  const body: ReadableStream<Uint8Array> | null | undefined = response.body;
  return body?.getReader();
};

const offersReader = (
  response: Response,
): response is Response & { readonly [bodyReader]: () => BodyReader | undefined } =>
  bodyReader in response;
