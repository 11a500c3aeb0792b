import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../one-clock.js';
import type { Answer } from './answer.js';
import { lastEvents, shortEvents, textEvent, toolCallEvents } from './chat-events.js';
import { deltaAt } from './long-text.js';
import type { Mark, SeenRequest } from './seen-request.js';

/** Sends an answer, and says what became of it once the response is over. */
export const send = async (response: ServerResponse, answer: Answer): Promise<SeenRequest> => {
  const marks: Mark[] = [];
  let [bytes, written] = [0, 0];
  const left = new AbortController();
  const closed = once(response, 'close').then(() => {
    left.abort();
    return now();
  });
  const write = async (text: string, deltas: number): Promise<void> => {
    bytes += text.length;
    written = deltas;
    if (response.write(text)) return;
    marks.push({ at: now(), deltas });
    await once(response, 'drain', { signal: left.signal });
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  try {
    for await (const [text, deltas] of piecesOf(answer, left.signal)) await write(text, deltas);
    marks.push({ at: now(), deltas: written });
    response.end();
  } catch (thrown) {
    if (!left.signal.aborted) throw thrown;
  }
  return { closedAt: await closed, isWhole: response.writableFinished, bytes, marks };
};

/** What is written at once, and how many deltas have been written with it. */
type Piece = readonly [text: string, deltas: number];

/** Deltas of a long answer that are written together. */
const perWrite = 20;

/** Milliseconds from one word of an endless answer to the next. */
const dripMs = 5;

async function* piecesOf(answer: Answer, signal: AbortSignal): AsyncGenerator<Piece, void> {
  switch (answer.type) {
    case 'short':
      yield [shortEvents, 0];
      return;
    case 'toolCall':
      yield [toolCallEvents, 0];
      return;
    case 'drip':
      for (;;) {
        yield [textEvent('drop '), 0];
        await sleep(dripMs, undefined, { signal });
      }
    case 'long':
      for (let first = 0; first < answer.deltas; first += perWrite) {
        const count = Math.min(perWrite, answer.deltas - first);
        const events = Array.from({ length: count }, (_, index) =>
          textEvent(deltaAt(first + index, answer.bytes)),
        );
        yield [events.join(''), first + count];
      }
      yield [lastEvents, answer.deltas];
  }
}
