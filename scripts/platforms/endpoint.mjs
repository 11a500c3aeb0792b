import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

/**
 * Starts an endpoint with the APIs of OpenAI and Anthropic, which pages of every origin may use. It asks for the first tool
 * that is offered, then answers with the result of that tool. A question that contains `wait` gets the beginning of an
 * answer that never ends. A GET request is answered when the client of each such answer has closed its connection.
 */
export async function startEndpoint() {
  let waiting = 0;
  let left = 0;
  const server = createServer((request, response) => {
    response.setHeader('access-control-allow-origin', '*');
    if (request.method === 'OPTIONS') {
      const asked = request.headers['access-control-request-headers'] ?? '';
      response.writeHead(204, { 'access-control-allow-headers': asked }).end();
    } else if (request.method === 'GET') {
      void whenLeft().then(
        () => response.end('left'),
        () => response.end('not left'),
      );
    } else {
      void json(request).then((body) => answer(request.url, body, response));
    }
  });
  const whenLeft = async () => {
    const signal = AbortSignal.timeout(20_000);
    while (waiting === 0 || left < waiting) await once(server, 'left', { signal });
  };
  const leave = () => {
    left += 1;
    server.emit('left');
  };
  const answer = (path, { messages, tools = [] }, response) => {
    const { write, question, result } = path.endsWith('/messages') ? anthropic : openai;
    const found = result(messages.at(-1));
    response.setHeader('content-type', 'text/event-stream');
    if (question(messages).includes('wait')) {
      waiting += 1;
      response.once('close', leave);
      write(response, { text: 'One moment' }, false);
    } else if (found !== undefined) write(response, { text: `The tool says: ${found}` });
    else if (tools.length > 0) write(response, { tool: tools[0] });
    else write(response, { text: 'Hello.' });
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Resolves when the client of each answer that never ends has closed its connection. There must be one. */
    whenLeft,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

const city = JSON.stringify({ city: 'Oslo' });

const openai = {
  question: (messages) => String(messages.find(({ role }) => role === 'user')?.content),
  result: (last) => (last.role === 'tool' ? last.content : undefined),
  write(response, { text, tool }, isWhole = true) {
    const send = (choice) =>
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
    if (tool === undefined) send({ delta: { content: text } });
    else {
      const called = { name: tool.function.name, arguments: city };
      send({ delta: { tool_calls: [{ index: 0, id: 'call_1', function: called }] } });
    }
    if (!isWhole) return;
    send({ delta: {}, finish_reason: tool === undefined ? 'stop' : 'tool_calls' });
    response.end('data: [DONE]\n\n');
  },
};

const anthropic = {
  question: (messages) => JSON.stringify(messages[0].content),
  result: ({ content }) => {
    const block = Array.isArray(content) ? content.find(({ type }) => type === 'tool_result') : {};
    if (block?.content === undefined) return undefined;
    return typeof block.content === 'string' ? block.content : block.content[0].text;
  },
  write(response, { text, tool }, isWhole = true) {
    const send = (type, fields = {}) =>
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
    const usage = { input_tokens: 1, output_tokens: 1 };
    send('message_start', { message: { id: 'msg_1', role: 'assistant', content: [], usage } });
    const block =
      tool === undefined
        ? { type: 'text', text: '' }
        : { type: 'tool_use', id: 'toolu_1', name: tool.name, input: {} };
    const delta =
      tool === undefined
        ? { type: 'text_delta', text }
        : { type: 'input_json_delta', partial_json: city };
    send('content_block_start', { index: 0, content_block: block });
    send('content_block_delta', { index: 0, delta });
    if (!isWhole) return;
    send('content_block_stop', { index: 0 });
    const stopReason = tool === undefined ? 'end_turn' : 'tool_use';
    send('message_delta', { delta: { stop_reason: stopReason }, usage });
    send('message_stop');
    response.end();
  },
};
