import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { from, mergeMap } from 'rxjs';
import { filtered, type OpenList } from './lists.js';
import { answered, type Connection, listed, listOf } from './requests.js';
import {
  contentsOf$,
  isTemplate,
  listedResource,
  listedTemplate,
  type McpResource,
  type McpResourceTemplate,
  resourceOf,
} from './resources.js';

type Resources = OpenList<McpResource | McpResourceTemplate>;

/** Returns the URIs that the client of a connection has subscribed to. */
export const handleResources = (
  connection: Connection,
  resources: Resources,
): ReadonlySet<string> => {
  const { server } = connection.mcp;
  const { serving } = connection;
  server.setRequestHandler('resources/list', async ({ params }, context) => {
    const isPlain = (it: McpResource | McpResourceTemplate): it is McpResource => !isTemplate(it);
    const plain = filtered(resources, isPlain);
    const { page, next } = await listed(connection, plain, context, params?.cursor, listedResource);
    return { resources: page, ...next };
  });
  server.setRequestHandler('resources/templates/list', async ({ params }, context) => {
    const templates = filtered(resources, isTemplate);
    const { page, next } = await listed(
      connection,
      templates,
      context,
      params?.cursor,
      listedTemplate,
    );
    return { resourceTemplates: page, ...next };
  });
  server.setRequestHandler('resources/read', ({ params: { uri } }, context) =>
    answered(connection, context, uri, (request, end$) =>
      from(resources.current(end$)).pipe(
        mergeMap((all) => contentsOf$(resourceOf(all, uri), uri, request, serving.limits.result)),
      ),
    ),
  );
  return serving.resourceUpdates$ === undefined
    ? new Set()
    : handleSubscriptions(connection, resources);
};

const handleSubscriptions = (connection: Connection, resources: Resources): ReadonlySet<string> => {
  const { server } = connection.mcp;
  const subscribed = new Set<string>();
  const { subscriptions } = connection.serving.limits;
  server.setRequestHandler('resources/subscribe', async ({ params: { uri } }, context) => {
    resourceOf(await listOf(connection, resources, context), uri);
    if (subscribed.size >= subscriptions && !subscribed.has(uri)) {
      const text = `You have ${subscriptions} subscriptions already. End one of them first.`;
      throw new ProtocolError(ProtocolErrorCode.InvalidRequest, text);
    }
    subscribed.add(uri);
    return {};
  });
  server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
    subscribed.delete(uri);
    return {};
  });
  return subscribed;
};
