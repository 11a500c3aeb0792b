/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Tells by its status whether a response can have a body. */
export const hasBody = (status: number): boolean => !bodiless.has(status);

/** A `Response` can be made with these. A server may send others. */
const isPossible = (status: number): boolean => status >= 200 && status <= 599;

/** What a response tells without its body. */
export interface ResponseHead extends ResponseInit {
  readonly status: number;
  readonly url?: string;
}

/** Makes a response, also with a status that is not meant to be, and with the address that it came from. */
export const responseWith = (
  body: ConstructorParameters<typeof Response>[0],
  head: ResponseHead,
): Response => tellingHead(new Response(body, possible(head)), head);

/** Gives what a response can be made with instead of its head. */
export const possible = (head: ResponseHead): ResponseHead =>
  isPossible(head.status) ? head : { ...head, status: 500 };

/** Lets a response tell what it could not be made with. */
export const tellingHead = <Made extends Response>(
  made: Made,
  { status, url }: ResponseHead,
): Made => {
  if (made.status !== status) Object.defineProperty(made, 'status', { value: status });
  if (url !== undefined) Object.defineProperty(made, 'url', { value: url });
  return made;
};
