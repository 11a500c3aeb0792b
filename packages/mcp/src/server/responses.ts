import { watchStream } from 'millrace/values';

/** Aborts the request when its client leaves before the end of the response. */
export const tracked = async (
  request: Request,
  answer: (request: Request) => Promise<Response>,
): Promise<Response> => {
  const left = new AbortController();
  const signal = AbortSignal.any([request.signal, left.signal]);
  const { url, method, headers, body } = request;
  // Build it from its parts: the request of an adapter may not be a real `Request`.
  const own = new Request(url, { method, headers, body, signal, duplex: 'half' });
  return watched(await answer(own), (isWhole) => {
    if (!isWhole) left.abort();
  });
};

/** Calls `ended` once, when the body ends, fails, or loses its reader. */
export const watched = (response: Response, ended: (isWhole: boolean) => void): Response => {
  const body: ReadableStream<Uint8Array> | null = response.body;
  if (body === null) {
    ended(true);
    return response;
  }
  const read = watchStream<Uint8Array>(body, (how) => {
    ended(how === 'ended');
  });
  return withBody(response, read);
};

/**
 * Ends a response of notifications when more bytes of it wait than its reader may leave unread: they would fill the memory. The
 * SDK's own streams have no limit, so they are read immediately.
 */
export const boundedUnread = (response: Response, most: number): Response => {
  const { body } = response;
  if (body === null) return response;
  const reader: ReadableStreamDefaultReader<Uint8Array> = body.getReader();
  let isLeft = false;
  const read = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    reader.read().then(
      ({ done, value }) => {
        if (isLeft) return;
        if (done) {
          controller.close();
        } else if ((controller.desiredSize ?? 0) <= 0) {
          controller.error(new Error(`The client left more than ${most} bytes unread.`));
          reader.cancel().catch(() => undefined);
        } else {
          controller.enqueue(value);
          read(controller);
        }
      },
      (error: unknown) => {
        controller.error(error);
      },
    );
  };
  return withBody(
    response,
    new ReadableStream<Uint8Array>(
      {
        start: read,
        cancel: (reason) => {
          isLeft = true;
          return reader.cancel(reason);
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: most }),
    ),
  );
};

const withBody = (
  { status, statusText, headers }: Response,
  body: ReadableStream<Uint8Array>,
): Response => new Response(body, { status, statusText, headers });
