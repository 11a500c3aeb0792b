import { from, mergeMap } from 'rxjs';
import type { OpenList } from './lists.js';
import { messagesOf$, listedPrompt, type McpPrompt } from './prompts.js';
import { answered, type Connection, listed } from './requests.js';

export const handlePrompts = (connection: Connection, prompts: OpenList<McpPrompt>): void => {
  const { server } = connection.mcp;
  server.setRequestHandler('prompts/list', async ({ params }, context) => {
    const { page, next } = await listed(connection, prompts, context, params?.cursor, listedPrompt);
    return { prompts: page, ...next };
  });
  server.setRequestHandler('prompts/get', ({ params }, context) => {
    const { name, arguments: given = {} } = params;
    const { result } = connection.serving.limits;
    return answered(connection, context, [name, given], (request, end$) =>
      from(prompts.current(end$)).pipe(
        mergeMap((all) => messagesOf$(all, name, given, request, result)),
      ),
    );
  });
};
