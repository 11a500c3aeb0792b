// The chat page in frames of other sites: its document and script, and what the server refuses from there.
import { MillraceError } from 'millrace';
import { isRecord, type Rule } from 'millrace/values';
import type { ChatProtocol } from '@millrace/server/chat';
import { type PageAsset, type PageRoute, pageRoutes } from '@millrace/server/page';
import { throwError } from 'rxjs';

/** The script for other sites. */
export const scriptName = 'millrace-chat.js';

/** A chat page that other sites embed. */
interface EmbeddedChat {
  /** The document for frames. */
  readonly html: string;
  /** The script that defines `<millrace-chat>`, for pages of other sites. */
  readonly script: PageAsset;
  /** The path of the page. */
  readonly path: string;
  /** The path of the chat server's routes. */
  readonly api: string;
  readonly embedIn: readonly string[];
}

/** As browsers write origins. The characters of hosts are checked, because some would end a policy. */
const isOrigin = (text: string): boolean =>
  /^https?:\/\/(?:[a-z\d-]+(?:\.[a-z\d-]+)*|\[[\da-f:.]+\])(?::\d+)?$/u.test(text) &&
  URL.canParse(text) &&
  new URL(text).origin === text;

export const isOrigins: Rule = [
  (value) =>
    Array.isArray(value) &&
    value.length <= 50 &&
    value.every((it) => typeof it === 'string' && isOrigin(it)),
  "a list of up to 50 origins in lower case, with scheme, host and any other port, without wildcard and path, such as ['https://shop.example']",
];

/** Throws for an entry that is no origin, and names it. */
export const assertOrigins = (embedIn: unknown): void => {
  const entries: readonly unknown[] = Array.isArray(embedIn) ? embedIn : [];
  const wrong = entries.find((it) => typeof it !== 'string' || !isOrigin(it));
  if (wrong === undefined) return;
  const message = `chatPage(): 'embedIn' must be ${isOrigins[1]}. This one is wrong: ${JSON.stringify(wrong)}.`;
  throw new MillraceError('config', message);
};

const folderOf = (path: string): string => path.replace(/\/+$/u, '');

/** The document for frames, and below it the script. */
export const embeddedRoutes = ({
  html,
  script,
  path,
  embedIn,
}: Omit<EmbeddedChat, 'api'>): readonly PageRoute[] => {
  const folder = folderOf(path);
  return pageRoutes({
    // It has the scripts and styles of the page.
    html: html.replaceAll('"./', () => `"{server}${folder}/`),
    assets: [{ ...script, isShared: true }],
    path: `${folder}/embed`,
    embedIn,
  });
};

/** The same addresses of a page that no other site may show: the answer names the option that allows it. */
export const notEmbeddedRoutes = (path: string): readonly PageRoute[] => {
  const embed = `${folderOf(path)}/embed`;
  const message =
    "No other site may show this chat. Who runs its server can allow that, by listing the site's origin in the option 'embedIn' of chatPage().";
  return [embed, `${embed}/${scriptName}`].map((address) => ({
    method: 'GET',
    path: address,
    isPublic: true,
    answer$: () =>
      throwError(
        () => new MillraceError('invalidRequest', message, { status: 404, userMessage: message }),
      ),
  }));
};

/**
 * Refuses the decisions of a frame: a site around it could lead the user's clicks there. The browser names the document in
 * the requests that it makes, so only what a conversation without decisions needs is allowed.
 */
export const assertNoDecision = ({
  path,
  api,
}: Pick<EmbeddedChat, 'path' | 'api'>): NonNullable<ChatProtocol['assert']> => {
  const frame = `${folderOf(path)}/embed`;
  return (request, body) => {
    if (request.method === 'GET' || request.method === 'HEAD' || !isFrom(frame, request)) return;
    const { pathname } = new URL(request.url);
    const isChat = pathname.startsWith(`${api}/chat`);
    const isAllowed =
      request.method === 'POST' && isChat && harmless.test(pathname.slice(`${api}/chat`.length));
    if (!isAllowed || (body !== undefined && bringsParts(body))) throw decidedInFrame();
  };
};

/** Questions, and what belongs to one conversation. Its `messages` may bring decisions, so they are checked as well. */
const harmless = /^(?:\/[^/]+\/(?:stop|steer|head|feedback))?\/?$/u;

const isFrom = (frame: string, { headers }: Request): boolean => {
  const referrer = headers.get('referer') ?? '';
  // A proxy may have removed the beginning of the path.
  return URL.canParse(referrer) && folderOf(new URL(referrer).pathname).endsWith(frame);
};

/** Whether a message that is not the user's has parts, such as results and decisions. */
const bringsParts = (body: unknown): boolean => {
  if (!isRecord(body)) return false;
  const { messages, message } = body;
  const all: readonly unknown[] = [message].concat(messages);
  return all.some(
    (it) =>
      isRecord(it) &&
      it['role'] !== 'user' &&
      !(Array.isArray(it['parts']) && it['parts'].length === 0),
  );
};

const decidedInFrame = (): MillraceError => {
  const message = 'A page within another site cannot decide. Open the chat in a tab of its own.';
  return new MillraceError('refused', message, { status: 403, userMessage: message });
};
