// `node:http`: the text of an answer as server-sent events, without a framework.
import { createDemand, createAgent, isMillraceError, text } from 'millrace';
import { openai } from '@millrace/openai';
import { toServerSentEvents } from '@millrace/server';
import { createServer } from 'node:http';
import { catchError, map, of } from 'rxjs';

const agent = createAgent({ name: 'helper', model: openai('gpt-5-mini') });

export const server = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const question = searchParams.get('question') ?? '';
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });

  // The model is read no faster than the client reads: it pauses while 16 kB wait for the socket.
  const demand = createDemand(16_384);
  response.on('drain', () => demand.backlog(0));

  const call = agent
    .stream$(question, { demand })
    .pipe(
      text(),
      map((delta) => ({ delta })),
      catchError((error: unknown) => of({ error: isMillraceError(error) && error.userMessage })),
      toServerSentEvents(),
    )
    .subscribe({
      next: (event) => {
        response.write(event);
        demand.backlog(response.writableLength);
      },
      complete: () => response.end(),
    });
  // A client that disconnects aborts the model request.
  response.on('close', () => call.unsubscribe());
});
