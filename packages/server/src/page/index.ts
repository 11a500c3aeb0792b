// Serves a page that is part of a package: one document, with scripts and styles of its own.
import { MillraceError } from 'millrace';
import { defer, map, type Observable, of } from 'rxjs';
import { mountHeader } from '../mount.js';

/** A script or a style of a page, compressed with gzip, in base64. Its name changes with its content. */
export interface PageAsset {
  readonly name: string;
  readonly type: string;
  readonly gzip: string;
  /** Whether pages of other sites may load it, without a user. Its name stays, so browsers keep it for an hour only. Default: false. */
  readonly isShared?: boolean;
}

/** A page and its path. */
export interface EmbeddedPage {
  /** The document, which refers to its assets as `./name`, and to a path of its server as `{server}/path`. */
  readonly html: string;
  readonly assets: readonly PageAsset[];
  /** The path of the document. */
  readonly path: string;
  /** The origins whose pages may show the document in a frame. Default: none. */
  readonly embedIn?: readonly string[];
}

/** A request for a page. */
interface PageRequest {
  readonly request: Request;
  /** The path below which the browser reaches the server, if a proxy names it. Default: unknown. */
  readonly mount?: string;
}

/** A route of a page, which also fits a `ChatProtocol`. */
export interface PageRoute {
  readonly method: 'GET';
  readonly path: string;
  readonly isPublic?: boolean;
  readonly isFramed?: boolean;
  /** Answers a request. Cold. */
  readonly answer$: (asked: PageRequest) => Observable<Response>;
}

/**
 * Returns the routes of a page. Only its own scripts and styles run, it talks to its own site only, and no
 * other site can frame it, but those of `embedIn`. Browsers keep the assets; the document is checked by its `etag`. Its links are relative to the requested
 * path: the page also works below a path that a proxy removes.
 */
export const pageRoutes = ({
  html,
  assets,
  path,
  embedIn = [],
}: EmbeddedPage): readonly PageRoute[] => {
  const folder = path.replace(/\/+$/u, '');
  const page = html.replaceAll('"./', () => `"{server}${folder}/`);
  return [
    {
      method: 'GET',
      path,
      ...(embedIn.length > 0 && { isFramed: true }),
      answer$: (asked) =>
        defer(() => {
          assertEmbedded(asked, embedIn);
          return document$(
            page.replaceAll('{server}', () => serverOf(asked)),
            embedIn,
            asked,
          );
        }),
    },
    ...assets.map((asset): PageRoute => ({
      method: 'GET',
      path: `${folder}/${asset.name}`,
      ...(asset.isShared === true && { isPublic: true }),
      answer$: ({ request }) => of(assetOf(asset, request)),
    })),
  ];
};

/** Refuses a frame of a site that is not listed, in words: the browser would show a page of its own. */
const assertEmbedded = (
  { request: { headers } }: PageRequest,
  embedIn: readonly string[],
): void => {
  const isFramed = headers.get('sec-fetch-dest') === 'iframe';
  const referrer = headers.get('referer') ?? '';
  const isOther = headers.get('sec-fetch-site') !== 'same-origin' && URL.canParse(referrer);
  if (!isFramed || !isOther || embedIn.includes(new URL(referrer).origin)) return;
  const message = `Pages of '${new URL(referrer).origin}' may not show this page. Only who runs its server can allow that, by adding this origin to the option 'embedIn'.`;
  throw new MillraceError('refused', message, { status: 403, userMessage: message });
};

/** The root of the server for links in a document, without a slash at the end. */
const serverOf = ({ request, mount = '' }: PageRequest): string => {
  if (mount !== '') return mount.replaceAll('&', '&amp;');
  const folders = new URL(request.url).pathname.split('/').length - 2;
  return folders === 0 ? '.' : Array.from({ length: folders }, () => '..').join('/');
};

/** Only files of this site run, and nothing may make elements of text. Pictures are those of messages. */
const policyFor = (ancestors: string): string =>
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  `base-uri 'none'; form-action 'none'; frame-ancestors ${ancestors}; require-trusted-types-for 'script'; trusted-types 'none'`;

/** The headers that say who may show a document in a frame. In a frame, its own requests name it as their referrer. */
const framing = (embedIn: readonly string[]): Readonly<Record<string, string>> =>
  embedIn.length === 0
    ? {
        'content-security-policy': policyFor("'none'"),
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
      }
    : // `X-Frame-Options` cannot list origins.
      {
        'content-security-policy': policyFor(embedIn.join(' ')),
        'referrer-policy': 'same-origin',
      };

const shared = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

const document$ = (
  page: string,
  embedIn: readonly string[],
  { request: { headers } }: PageRequest,
): Observable<Response> =>
  defer(() => crypto.subtle.digest('SHA-256', new TextEncoder().encode(page))).pipe(
    map((digest) => {
      const etag = `"${btoa(String.fromCharCode(...new Uint8Array(digest)))}"`;
      const isKnown = headers.get('if-none-match')?.includes(etag) === true;
      return new Response(isKnown ? null : page, {
        status: isKnown ? 304 : 200,
        headers: {
          ...shared,
          ...framing(embedIn),
          etag,
          'cache-control': 'no-cache',
          'content-type': 'text/html; charset=utf-8',
          'cross-origin-opener-policy': 'same-origin',
          vary: mountHeader,
        },
      });
    }),
  );

const assetOf = ({ type, gzip, isShared = false }: PageAsset, { headers }: Request): Response => {
  const bytes = Uint8Array.from(atob(gzip), (char) => char.charCodeAt(0));
  const takesGzip = /\bgzip\b(?!;\s*q=0(?:\.0*)?(?:,|$))/iu.test(
    headers.get('accept-encoding') ?? '',
  );
  const body = takesGzip
    ? bytes
    : new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(body, {
    headers: {
      ...shared,
      ...(takesGzip && { 'content-encoding': 'gzip' }),
      'cache-control': `public, max-age=${isShared ? '3600' : '31536000, immutable'}`,
      ...(isShared && { 'cross-origin-resource-policy': 'cross-origin' }),
      'content-type': type,
      vary: 'accept-encoding',
    },
  });
};
