import { checkOptions, isText, type Rule } from '@millrace/core/values';
import type { ChatProtocol, Route } from '@millrace/server/chat';
import { defer, map, type Observable, of } from 'rxjs';
import { type Asset, assets, html } from '#assets';

/** Options of `chatPage`. */
export interface ChatPageOptions {
  /** The name above the conversations. Default: the name of the agent. */
  readonly title?: string;
  /** The path of the page. Default: `/`. */
  readonly path?: string;
  /** The `path` of the chat server, which has the routes that the page uses. Default: `/api`. */
  readonly api?: string;
}

/**
 * Adds a chat page to a chat server: `chatServer(agent, { protocols: [chatPage()] })`. The page talks to the routes for
 * clients of the AI SDK, with the cookies of its site. Its scripts and styles have names that change with their content,
 * so browsers keep them. A wrong option is a `config` error.
 */
export const chatPage = (options: ChatPageOptions = {}): ChatProtocol => {
  checkOptions('chatPage()', options, rules);
  const { path = '/', api = '/api' } = options;
  const folder = path.replace(/\/+$/u, '');
  return ({ agent }) => {
    const values = { title: options.title ?? agent.name, api: api.replace(/\/+$/u, '') };
    const page = html
      .replaceAll('"./', `"${folder}/`)
      .replaceAll(/\{(title|api)\}/gu, (_, name: keyof typeof values) => escaped(values[name]));
    return [
      { method: 'GET', path, answer$: ({ request }) => document$(page, request) },
      ...assets.map((asset): Route => ({
        method: 'GET',
        path: `${folder}/${asset.name}`,
        answer$: ({ request }) => of(assetResponse(asset, request)),
      })),
    ];
  };
};

const isPath: Rule = [
  (value) => typeof value === 'string' && /^\/$|^(?:\/[\w.~-]+)*\/?$/u.test(value),
  "a path, such as '/'",
];

const rules: Readonly<Record<keyof ChatPageOptions, Rule>> = {
  title: isText,
  path: [(value) => value !== '' && isPath[0](value), isPath[1]],
  api: isPath,
};

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"]/gu, (char) => `&#${String(char.codePointAt(0))};`);

/** Only files of this site run, and nothing may make elements of text. Pictures are those of messages. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const shared = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
};

const document$ = (page: string, { headers }: Request): Observable<Response> =>
  defer(() => crypto.subtle.digest('SHA-256', new TextEncoder().encode(page))).pipe(
    map((digest) => {
      const etag = `"${[...new Uint8Array(digest, 0, 16)].map((byte) => byte.toString(16).padStart(2, '0')).join('')}"`;
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
          'x-frame-options': 'DENY',
        },
      });
    }),
  );

const assetResponse = ({ type, gzip }: Asset, { headers }: Request): Response => {
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
