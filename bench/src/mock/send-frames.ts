import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { httpChunk } from './http-chunk.js';

/** Frames that go to the system in one call, each still a chunk of HTTP. */
const atOnce = 64;

/** Sends frames as fast as the client takes them, and ends the response. */
export const sendFrames = (response: ServerResponse, frames: readonly Buffer[]): void => {
  const socket = begin(response);
  const chunks = chunksOf(frames, atOnce);
  let next = 0;
  const more = (): void => {
    let isReady = true;
    while (isReady && next < chunks.length && !socket.destroyed) {
      isReady = socket.write(chunks[next] ?? '');
      next += 1;
    }
    if (next < chunks.length) socket.once('drain', more);
    else response.end();
  };
  more();
};

/** Sends frames in one write, with the headers, and ends the response. */
export const sendWhole = (response: ServerResponse, frames: readonly Buffer[]): void => {
  response.socket?.cork();
  const socket = begin(response);
  for (const chunk of chunksOf(frames, frames.length)) socket.write(chunk);
  response.end();
  socket.uncork();
};

/** Sends a frame every so many milliseconds, and ends the response. */
export const sendPaced = (
  response: ServerResponse,
  frames: readonly Buffer[],
  gapMs: number,
): void => {
  const socket = begin(response);
  const chunks = chunksOf(frames, 1);
  let next = 0;
  const timer = setInterval(() => {
    socket.write(chunks[next] ?? '');
    next += 1;
    if (next < chunks.length) return;
    clearInterval(timer);
    response.end();
  }, gapMs);
  response.once('close', () => clearInterval(timer));
};

/**
 * Sends the headers, and gives the socket: chunks go there as they are. A response would make each of them anew, and the mock
 * would be slower than its clients.
 */
const begin = (response: ServerResponse): Socket => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  if (response.socket === null) throw new Error('The client has left.');
  return response.socket;
};

/** Made once for all responses with the same frames. */
const known = new WeakMap<readonly Buffer[], Map<number, readonly Buffer[]>>();

/** Frames as chunks of HTTP, so many in a buffer. */
const chunksOf = (frames: readonly Buffer[], size: number): readonly Buffer[] => {
  const ofFrames = known.get(frames) ?? new Map<number, readonly Buffer[]>();
  const chunks =
    ofFrames.get(size) ??
    Array.from({ length: Math.ceil(frames.length / size) }, (_, index) =>
      Buffer.concat(frames.slice(index * size, (index + 1) * size).map(httpChunk)),
    );
  known.set(frames, ofFrames.set(size, chunks));
  return chunks;
};
