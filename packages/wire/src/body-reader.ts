/** Reads the body of a response. */
export interface BodyReader {
  /** Gives what has come and was not read, or waits for it. Rejects when the connection breaks. */
  read(): Promise<IteratorResult<Uint8Array, unknown>>;
  /** Leaves the rest unread, also where a `read` waits. */
  cancel(): Promise<unknown>;
}

/**
 * The name of a method by which a `Response` may offer a reader of its body that costs less than the one of its web
 * stream. It locks the body as `getReader` does.
 */
export const bodyReader = Symbol.for('millrace.bodyReader');

/** Gives the cheapest reader of the body of a response; nothing where it has none. */
export const readerOf = (response: Response): BodyReader | undefined => {
  if (offersReader(response)) return response[bodyReader]();
  // That of an older `fetch` may be absent.
  const body: ReadableStream<Uint8Array> | null | undefined = response.body;
  return body?.getReader();
};

const offersReader = (
  response: Response,
): response is Response & { readonly [bodyReader]: () => BodyReader | undefined } =>
  bodyReader in response;
