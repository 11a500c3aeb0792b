import { request } from 'node:http';
import { connect } from 'node:net';
import { text as textOfStream } from 'node:stream/consumers';
import { isRecord, parsedJson } from 'millrace/values';

export interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

export interface Sending {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The path as it is sent. `fetch` and `URL` would normalize it. */
  readonly path?: string;
}

/** Sends a request as an attacker can: with any header and any path. A connection that is cut has the status 0. */
export const send = (url: string, sending: Sending = {}): Promise<Answer> =>
  new Promise((resolve) => {
    const { hostname, port, pathname, search } = new URL(url);
    const { method = 'GET', headers = {}, body, path = pathname + search } = sending;
    const cut = (error: Error) => resolve({ status: 0, headers: {}, text: error.message });
    const outgoing = request({ hostname, port, path, method, headers, agent: false });
    outgoing.once('response', (incoming) => {
      const { statusCode: status = 0 } = incoming;
      textOfStream(incoming).then(
        (text) => resolve({ status, headers: { ...incoming.headers }, text }),
        cut,
      );
    });
    outgoing.once('error', cut);
    outgoing.end(body);
  });

export const postJson = (
  url: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> =>
  send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

/** Sends bytes that no client would send, and resolves to what comes back until the status line and headers are there, or until the end. */
export const sendBytes = (port: number, bytes: string): Promise<string> =>
  new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    const end = () => {
      socket.destroy();
      resolve(received);
    };
    socket.setEncoding('utf8').on('data', (data: string) => {
      received += data;
      if (isWhole(received)) end();
    });
    socket.once('error', end).once('close', end);
  });

/** Whether a response has come with the whole of its body. */
const isWhole = (received: string): boolean => {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  if (rest.length === 0) return false;
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (head.startsWith('HTTP/1.1 101')) return true;
  if (length !== undefined) return rest.join('\r\n\r\n').length >= Number(length);
  return received.endsWith('0\r\n\r\n') || !/transfer-encoding/i.test(head);
};

/** The chunks of a stream of the AI SDK. */
export const chunksOf = ({ text }: Answer): readonly Readonly<Record<string, unknown>>[] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => parsedJson(line.slice(6)))
    .filter(isRecord);
