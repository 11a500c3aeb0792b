import { noop } from 'rxjs';
import { checkOptions, isRecord, type Rule } from 'millrace/values';
import { movedRequest } from '../mount.js';
import type { ChatServer } from './chat-server.js';
import { failure, notFound } from './guard.js';

/** Servers of several agents, as one. */
export type MountedServers = Pick<ChatServer, 'respond' | 'handles'>;

/**
 * Serves several agents at one address, each below a path of its own, with all of its protocols:
 * `mountServers({ '/sales': chatServer(sales), '/support': chatServer(support) })`. Each server gets its requests without that path. Close the servers
 * themselves.
 */
export const mountServers = (servers: Readonly<Record<string, MountedServers>>): MountedServers => {
  checkOptions('mountServers()', { servers }, { servers: isServers }, ['servers']);
  const mounts = Object.entries(servers).map(([path, server]) => ({ path, server }));
  // Sort the longest path first: a shorter one may be its prefix.
  mounts.sort((one, other) => other.path.length - one.path.length);
  /** The server for a URL, and that URL without its path. */
  const find = (text: string) => {
    const url = new URL(text);
    const found = mounts.find(({ path }) => `${url.pathname}/`.startsWith(`${path}/`));
    if (found === undefined) return undefined;
    const rest = url.pathname.slice(found.path.length);
    return { ...found, url: `${url.origin}${rest || '/'}${url.search}` };
  };
  return {
    respond: (request) => {
      const found = find(request.url);
      if (found === undefined) return Promise.resolve(failure(notFound(), noop));
      return found.server.respond(movedRequest(request, found.url, found.path));
    },
    handles: ({ method, url }) => {
      const found = find(url);
      return found?.server.handles({ method, url: found.url }) === true;
    },
  };
};

const isServers: Rule = [
  (value) =>
    isRecord(value) &&
    Object.entries(value).every(
      ([path, server]) =>
        /^(?:\/[\w.~-]+)+$/u.test(path) && isRecord(server) && 'respond' in server,
    ),
  "servers by their paths, such as { '/sales': chatServer(sales) }",
];
