const bodiless: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Whether a response with this status can have a body. */
export const hasBody = (status: number): boolean => !bodiless.has(status);

/** The `Response` constructor rejects other statuses, but a server may send them. */
const isConstructible = (status: number): boolean => status >= 200 && status <= 599;

/** The status, headers and URL of a response. */
export interface ResponseHead extends ResponseInit {
  readonly status: number;
  readonly url?: string;
}

/** Creates a response with a URL, and with any status, even if the `Response` constructor rejects it. */
export const buildResponse = (
  body: ConstructorParameters<typeof Response>[0],
  head: ResponseHead,
): Response => withHead(new Response(body, constructibleHead(head)), head);

/** Replaces a status that the `Response` constructor rejects. */
export const constructibleHead = (head: ResponseHead): ResponseHead =>
  isConstructible(head.status) ? head : { ...head, status: 500 };

/** Defines the status and URL that the `Response` constructor does not accept. */
export const withHead = <Made extends Response>(
  made: Made,
  { status, url }: ResponseHead,
): Made => {
  if (made.status !== status) Object.defineProperty(made, 'status', { value: status });
  if (url !== undefined) Object.defineProperty(made, 'url', { value: url });
  return made;
};
