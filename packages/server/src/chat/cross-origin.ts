// Which sites may use the server: the host that a request was made to, and the origin of the page that made it.
import { MillraceError } from 'millrace';

/** Guards against DNS rebinding: a page whose host name resolves to this machine is still another site. */
export const assertHost = (request: Request, hosts: readonly string[] | undefined): void => {
  if (hosts === undefined) return;
  const hostname = madeTo(request)?.hostname ?? '';
  if (hosts.includes(hostname.toLowerCase())) return;
  const name = hostname.length > 255 || hostname === '' ? 'The host' : `The host '${hostname}'`;
  throw refusal(
    421,
    `${name} is not served. Add it to the option 'hosts' of the server, or authenticate users with 'user'.`,
  );
};

/**
 * The origin that a request was made to. The `Host` header takes precedence over the URL, whose host may be the one that
 * the framework was started with: in Next.js, it is always `localhost`.
 */
const madeTo = (
  { url, headers }: Request,
  { protocol } = new URL(url),
): Pick<URL, 'host' | 'hostname'> | undefined => {
  const host = headers.get('host');
  if (host === null) return new URL(url);
  const text = `${protocol}//${host}`;
  const isHost = /^(?:[^\s/?#@\\]+)$/u.test(host) && URL.canParse(text);
  return isHost ? new URL(text) : undefined;
};

/** Adds the CORS headers to a response. */
export type AddCrossOrigin = (headers: Headers) => void;

/** Returns `undefined` for a page of the server's own origin, and for clients other than pages. Throws if the origin is not allowed. */
export const crossOrigin = (
  request: Request,
  origins: readonly string[],
  methods: readonly string[],
): AddCrossOrigin | undefined => {
  const origin = request.headers.get('origin');
  if (origin === null || isOwnPage(request, origin)) return undefined;
  if (!origins.includes(origin)) throw refusedOrigin(origin);
  const asked = request.headers.get('access-control-request-headers');
  return (headers) => {
    const own = [...headers.keys()];
    const added = {
      'access-control-allow-origin': origin,
      'access-control-allow-credentials': 'true',
      ...(request.method === 'OPTIONS'
        ? {
            'access-control-allow-methods': methods.join(', '),
            // The origin is trusted with the user's cookies, so it may send any header as well.
            ...(asked !== null && { 'access-control-allow-headers': asked }),
            // The maximum that browsers accept.
            'access-control-max-age': '7200',
          }
        : own.length > 0 && { 'access-control-expose-headers': own.join(', ') }),
    };
    Object.entries(added).forEach(([name, value]) => {
      headers.set(name, value);
    });
    headers.append('vary', 'origin, access-control-request-headers');
  };
};

/**
 * Throws for a request without an `Origin` that a page of another origin triggers, such as for an image or a frame: it
 * carries the user's cookies, and a route may have side effects. A page that the user opens passes, and a document for frames of other sites.
 */
export const assertNotEmbedded = ({ method, headers }: Request, isFramed = false): void => {
  const site = headers.get('sec-fetch-site') ?? 'none';
  if (headers.has('origin') || site === 'same-origin' || site === 'none') return;
  const dests = isFramed ? ['document', 'iframe'] : ['document'];
  const isOpened =
    ['GET', 'HEAD'].includes(method) &&
    headers.get('sec-fetch-mode') === 'navigate' &&
    dests.includes(headers.get('sec-fetch-dest') ?? 'document');
  if (isOpened) return;
  if (['iframe', 'frame'].includes(headers.get('sec-fetch-dest') ?? '')) {
    throw refusal(
      403,
      "This page may not be shown within another site. Only who runs its server can allow that: for a chat page, with the option 'embedIn'.",
    );
  }
  throw refusal(
    403,
    "Pages of other origins may not load this as a part of themselves, such as a picture or a frame. They may ask for it with CORS, if their origin is in the option 'origins' of the server.",
  );
};

/**
 * Whether the page has the origin that the request was made to. `Sec-Fetch-Site` is checked first, since a proxy may have
 * changed the `Host`; pages cannot set it. Browsers omit it on hosts without TLS other than this machine. Then the hosts
 * are compared, without schemes: a proxy may terminate TLS.
 */
const isOwnPage = (request: Request, origin: string): boolean => {
  const site = request.headers.get('sec-fetch-site');
  if (site !== null) return site === 'same-origin';
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  // Use the scheme of the page for both: one of them may omit its default port.
  return madeTo(request, page)?.host === page.host;
};

const refusedOrigin = (origin: string): MillraceError => {
  if (isNamed.test(origin)) {
    return refusal(
      403,
      `Pages of '${origin}' may not use this server. To allow them, add this origin to the option 'origins' of the server.`,
    );
  }
  return refusal(
    403,
    'Pages without an origin, such as files and sandboxed frames, may not use this server.',
  );
};

const isNamed = /^[a-z][a-z\d+.-]{0,31}:\/\/[\w.:[\]-]{1,255}$/iu;

const refusal = (status: number, text: string): MillraceError =>
  new MillraceError('refused', text, { status, userMessage: text });
