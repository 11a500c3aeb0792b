import type { Agent } from 'node:http';
import { checkOptions, isObject } from '@millrace/core/adapter';
import { type Outgoing, outgoingOf } from './outgoing.js';
import { sendRequest } from './send-request.js';

/** How `nodeFetch` connects. */
export interface NodeFetchOptions {
  /**
   * What keeps the connections, and says how many there may be, through which proxy they go and whom TLS trusts.
   * Default: one that has as many as are needed, and keeps each for 4 seconds, or as long as the server says.
   */
  readonly agent?: Agent | undefined;
}

/** As long as the `fetch` of Node keeps one: most servers close it after 5. */
const idleMs = 4_000;

/**
 * Makes a `fetch` over `node:http` and `node:https`, which costs about half of the one of Node. It can be handed as
 * the option `fetch` to models, to SDKs and to whoever else takes one.
 *
 * It is as the one of Node but for these: it follows no redirect, as with `redirect: 'manual'`; it reads nothing ahead
 * of whoever reads the body, so that a response which nobody reads holds its connection until it is aborted; it has no
 * time limits of its own, and refuses no port; a body that is a stream is read before it is sent; and what is built
 * upon the one of Node, as `setGlobalDispatcher` and instrumentation, does not see its requests.
 *
 * The modules of Node are loaded with the first request. Throws a `MillraceError` (`config`) for an option that there
 * is not.
 */
export const nodeFetch = (options: NodeFetchOptions = {}): typeof fetch => {
  checkOptions('nodeFetch()', options, { agent: isObject });
  const senders = new Map<string, Promise<Send>>();
  const senderFor = ({ protocol }: URL): Promise<Send> => {
    const known = senders.get(protocol) ?? sendOver(protocol, options);
    senders.set(protocol, known);
    return known;
  };
  return async (input, init) => {
    const outgoing = await outgoingOf(input, init);
    const send = await senderFor(outgoing.url);
    try {
      return await send(outgoing);
    } catch (thrown) {
      outgoing.signal?.throwIfAborted();
      throw thrown;
    }
  };
};

type Send = (outgoing: Outgoing) => Promise<Response>;

/** Loaded with the first request: what extends `Response` loads the `fetch` of Node, which takes 25 ms. */
const sendOver = async (protocol: string, { agent }: NodeFetchOptions): Promise<Send> => {
  const [{ request: begin, Agent }, { responseTo }] = await Promise.all([
    protocol === 'https:' ? import('node:https') : import('node:http'),
    import('./response-to.js'),
  ]);
  const transport = { begin, agent: agent ?? new Agent({ keepAlive: true, timeout: idleMs }) };
  return async (outgoing) => responseTo(outgoing, await sendRequest(outgoing, transport));
};
