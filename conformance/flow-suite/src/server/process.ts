import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { fromPath } from './answer.js';
import type { SeenRequest } from './seen-request.js';
import { send } from './send.js';

/** What is known of an address: a promise for each of its requests. */
const seen = new Map<string, Promise<SeenRequest>[]>();

/** Paths are `/<id>/<answer>/v1/chat/completions`, or `/<id>/seen`: what has come of all requests with that id. */
const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const [, id = '', path = ''] = (request.url ?? '').split('/');
  const known = seen.get(id) ?? [];
  if (path === 'seen') {
    const all = await Promise.all(known);
    response.writeHead(200, { 'content-type': 'application/json', connection: 'close' });
    response.end(JSON.stringify(all));
    return;
  }
  seen.set(id, known);
  request.resume();
  known.push(send(response, known.length === 0 ? fromPath(path) : { type: 'short' }));
};

const server = createServer((request, response) => void serve(request, response));

process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  process.send?.(`http://127.0.0.1:${port}`);
});
