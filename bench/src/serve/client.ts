import { Agent as Connections, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { noop } from 'rxjs';
import { now } from '../one-clock.js';
import type { Plan } from './plan.js';

let questions = 0;

/** The body of a request that begins a conversation. */
export const bodyOf = (plan: Plan, chatId = newChatId()): string =>
  JSON.stringify({
    id: chatId,
    messages: [{ id: 'q1', role: 'user', parts: [{ type: 'text', text: JSON.stringify(plan) }] }],
  });

export const newChatId = (): string => {
  questions += 1;
  return `chat-${process.pid}-${questions}`;
};

/** What a client has seen of one answer. */
export interface Answer {
  readonly status: number;
  /** From the request to the first byte of the body, in milliseconds. */
  readonly firstMs: number;
  /** To the first delta. */
  readonly deltaMs: number;
  readonly wholeMs: number;
  readonly events: number;
  readonly bytes: number;
  /** Comments that kept it open. */
  readonly heartbeats: number;
  readonly isDone: boolean;
}

const connections = new Connections({ keepAlive: true });

/** Asks, and reads the whole answer. `onText` gets each piece of it as it arrives. */
export const ask = (
  port: number,
  plan: Plan,
  { onText, chatId }: { readonly onText?: (text: string) => void; readonly chatId?: string } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const body = bodyOf(plan, chatId);
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const place = { host: '127.0.0.1', port, path: '/api/chat', agent: connections };
    const sentAt = now();
    const asked = request({ ...place, method: 'POST', headers }, (response) => {
      readAnswer(response, sentAt, onText).then(resolve, reject);
    });
    asked.once('error', reject);
    asked.end(body);
  });

const readAnswer = (
  response: IncomingMessage,
  sentAt: number,
  onText?: (text: string) => void,
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let [firstMs, deltaMs, events, bytes, heartbeats] = [NaN, NaN, 0, 0, 0];
    let tail = '';
    response.setEncoding('latin1');
    response.on('data', (text: string) => {
      const ms = now() - sentAt;
      if (bytes === 0) firstMs = ms;
      bytes += text.length;
      if (Number.isNaN(deltaMs) && `${tail}${text}`.includes('"text-delta"')) deltaMs = ms;
      events += count(text, 'data: ');
      heartbeats += count(text, ': \n\n');
      tail = `${tail}${text}`.slice(-40);
      onText?.(text);
    });
    response.once('error', reject);
    response.once('end', () => {
      const isDone = tail.includes('data: [DONE]');
      const status = response.statusCode ?? 0;
      const wholeMs = now() - sentAt;
      resolve({ status, firstMs, deltaMs, wholeMs, events, bytes, heartbeats, isDone });
    });
  });

const count = (text: string, part: string): number => {
  let found = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length))
    found += 1;
  return found;
};

/** The bytes of a request that begins a conversation. */
export const postOf = (body: string, more = ''): string =>
  `POST /api/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${more}\r\n${body}`;

/** The bytes of a request that follows a running answer. */
export const followOf = (chatId: string, more = ''): string =>
  `GET /api/chat/${chatId}/stream HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

/** Opens a socket, and resolves once it is connected. Errors of it later are ignored: its end says enough. */
export const open = (port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject).on('error', () => undefined);
      resolve(socket);
    });
  });

/** Opens many, some at a time: the queue of a listening socket is short. */
export const openMany = async (
  port: number,
  total: number,
  text: (index: number) => string,
  onOpen: (socket: Socket) => void = noop,
): Promise<readonly Socket[]> => {
  const sockets: Socket[] = [];
  while (sockets.length < total) {
    const some = Math.min(100, total - sockets.length);
    const opened = await Promise.all(Array.from({ length: some }, () => open(port)));
    for (const socket of opened) {
      onOpen(socket);
      const first = text(sockets.length);
      if (first !== '') socket.write(first);
      socket.resume();
      sockets.push(socket);
    }
  }
  return sockets;
};

/** Resolves to all that a socket gets until it closes, or nothing more has come for so long, as text. */
export const wholeText = (socket: Socket, quietMs = 0): Promise<string> =>
  new Promise((resolve) => {
    let text = '';
    const done = (): void => resolve(text);
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1');
      if (quietMs > 0) socket.setTimeout(quietMs);
    });
    socket.once('close', done);
    if (quietMs > 0) socket.setTimeout(answerMs, done);
  });

/** A busy machine may take long to begin an answer. */
const answerMs = 5_000;
