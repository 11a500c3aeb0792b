// Serves a page that is part of a package: one document, with scripts and styles of its own.
import { defer, map, type Observable, of } from 'rxjs';
import { mountHeader } from '../mount.js';

/** A script or a style of a page, compressed with gzip, in base64. Its name changes with its content. */
export interface PageAsset {
  readonly name: string;
  readonly type: string;
  readonly gzip: string;
}

/** A page and its path. */
export interface EmbeddedPage {
  /** The document, which refers to its assets as `./name`, and to a path of its server as `{server}/path`. */
  readonly html: string;
  readonly assets: readonly PageAsset[];
  /** The path of the document. */
  readonly path: string;
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
  /** Answers a request. Cold. */
  readonly answer$: (asked: PageRequest) => Observable<Response>;
}

/**
 * Returns the routes of a page. Only its own scripts and styles run, it talks to its own site only, and no
 * other site can frame it. Browsers keep the assets; the document is checked by its `etag`. Its links are relative to the requested
 * path: the page also works below a path that a proxy removes.
 */
export const pageRoutes = ({ html, assets, path }: EmbeddedPage): readonly PageRoute[] => {
  const folder = path.replace(/\/+$/u, '');
  const page = html.replaceAll('"./', () => `"{server}${folder}/`);
  return [
    {
      method: 'GET',
      path,
      answer$: (asked) =>
        document$(
          page.replaceAll('{server}', () => serverOf(asked)),
          asked,
        ),
    },
    ...assets.map((asset): PageRoute => ({
      method: 'GET',
      path: `${folder}/${asset.name}`,
      answer$: ({ request }) => of(assetOf(asset, request)),
    })),
  ];
};

/** The root of the server for links in a document, without a slash at the end. */
const serverOf = ({ request, mount = '' }: PageRequest): string => {
  if (mount !== '') return mount.replaceAll('&', '&amp;');
  const folders = new URL(request.url).pathname.split('/').length - 2;
  return folders === 0 ? '.' : Array.from({ length: folders }, () => '..').join('/');
};

/** Only files of this site run, and nothing may make elements of text. Pictures are those of messages. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const shared = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

const document$ = (page: string, { request: { headers } }: PageRequest): Observable<Response> =>
  defer(() => crypto.subtle.digest('SHA-256', new TextEncoder().encode(page))).pipe(
    map((digest) => {
      const etag = `"${btoa(String.fromCharCode(...new Uint8Array(digest)))}"`;
      const isKnown = headers.get('if-none-match')?.includes(etag) === true;
      return new Response(isKnown ? null : page, {
        status: isKnown ? 304 : 200,
        headers: {
          ...shared,
          etag,
          'cache-control': 'no-cache',
          'content-security-policy': policy,
          'content-type': 'text/html; charset=utf-8',
          'cross-origin-opener-policy': 'same-origin',
          'referrer-policy': 'no-referrer',
          vary: mountHeader,
          'x-frame-options': 'DENY',
        },
      });
    }),
  );

const assetOf = ({ type, gzip }: PageAsset, { headers }: Request): Response => {
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
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': type,
      vary: 'accept-encoding',
    },
  });
};
