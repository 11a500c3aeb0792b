import { createAgent } from 'millrace';
import { type ScriptedAnswer, scriptedModel, text } from 'millrace/testing';
import { webSocketChat } from '@millrace/server/web-socket';
import { postJson, sendBytes } from '../driver/http.js';
import { type Serving, serving } from '../driver/serving.js';
import { type Attack, scene } from '../scene.js';

const secret = 'The diagnosis is F32.1.';
const answers: readonly ScriptedAnswer[] = Array.from({ length: 50 }, () => [text(secret)]);
const conversation = {
  id: 'own',
  messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }],
};

const open = async (): Promise<Serving> => {
  const agent = createAgent({ name: 'helper', model: scriptedModel(...answers) });
  const served = await serving(agent, { protocols: [webSocketChat()] });
  await postJson(`${served.url}/api/chat`, conversation);
  return served;
};

/** A page of another site in the user's browser, or a name that it has rebound to loopback. */
const refused =
  (headers: Readonly<Record<string, string>>, statuses: readonly number[]): Attack<Serving> =>
  async ({ url, port }) => {
    const own: Record<string, string> = {};
    for (const [name, value] of Object.entries(headers)) {
      own[name] = value.replace('PORT', String(port));
    }
    const { status } = await postJson(`${url}/api/chat`, conversation, own);
    return statuses.includes(status) ? undefined : `it answered ${status}`;
  };

/** Bytes that no browser sends. `PORT` is the one of the server. */
const raw =
  (lines: readonly string[], isHeld: (answer: string) => boolean): Attack<Serving> =>
  async ({ port }) => {
    const answer = await sendBytes(port, lines.join('\r\n').replaceAll('PORT', String(port)));
    return isHeld(answer) ? undefined : answer.slice(0, 200);
  };

const hidesSecret = (answer: string): boolean => !answer.includes(secret);
const isRefused = (answer: string): boolean =>
  answer.startsWith('HTTP/1.1 4') && hidesSecret(answer);
const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];
const socketKey = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';

export const crossSiteScenes = [
  scene({
    promise: 'A chat server answers pages of its own origin only',
    open,
    close: (served) => served.close(),
    attacks: {
      'Origin of another site': refused({ origin: 'http://evil.test' }, [403]),
      'Origin null': refused({ origin: 'null' }, [403]),
      'Origin of another port': refused({ origin: 'http://127.0.0.1:1' }, [403]),
      'Host of another site': refused({ host: 'evil.test' }, [421]),
      'Host and Origin of another site': refused(
        { host: 'evil.test:PORT', origin: 'http://evil.test:PORT' },
        [421, 403],
      ),
      'Host with a user name': refused({ host: 'localhost@evil.test' }, [400, 421]),
      'Host localhost with a dot': refused({ host: 'localhost.:PORT' }, [421]),
      'Host as a mapped address': refused({ host: '[::ffff:127.0.0.1]' }, [400, 421]),
      ...Object.fromEntries(
        [
          ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
          ...['', 'text/plain; application/json', 'application/jsonx'],
        ].map((type) => [
          `a form with the type "${type}"`,
          refused({ 'content-type': type }, [415]),
        ]),
      ),
      'a request in a request': raw(
        [
          ...['POST /api/chat HTTP/1.1', 'Host: 127.0.0.1:PORT', 'Content-Type: application/json'],
          ...['Content-Length: 4', 'Transfer-Encoding: chunked', '', '0', ''],
          ...['GET /api/chat/own HTTP/1.1', 'Host: 127.0.0.1', '', ''],
        ],
        isRefused,
      ),
      'a request after a body that is not read': raw(
        [
          ...['POST /api/chat HTTP/1.1', 'Host: 127.0.0.1:PORT', 'Connection: Upgrade'],
          ...['Upgrade: other', 'Content-Type: application/json', 'Content-Length: 10', ''],
          '0123456789GET /api/chat/own HTTP/1.1',
          ...['Host: evil.test', '', ''],
        ],
        isRefused,
      ),
      'an absolute address of another site': raw(
        ['GET http://evil.test/api/chat/own HTTP/1.1', 'Host: 127.0.0.1:PORT', '', ''],
        isRefused,
      ),
      'a path that looks like another site': raw(
        ['GET //evil.test/api/chat/own HTTP/1.1', 'Host: 127.0.0.1:PORT', '', ''],
        hidesSecret,
      ),
      'no Host': raw(['GET /api/chat/own HTTP/1.0', '', ''], isRefused),
      'a broken escape': raw(
        ['GET /api/chat/%E0%A4%A HTTP/1.1', 'Host: 127.0.0.1:PORT', '', ''],
        isRefused,
      ),
      ...Object.fromEntries(
        [
          ['of another site', 'Host: 127.0.0.1:PORT', 'Origin: http://evil.test'],
          ['of no site', 'Host: 127.0.0.1:PORT', 'Origin: null'],
          ['at the name of another site', 'Host: evil.test', 'X-None: 1'],
        ].map(([about = '', ...headers]) => [
          `a web socket ${about}`,
          raw(['GET /api/chat HTTP/1.1', ...headers, ...upgrade, socketKey, '', ''], isRefused),
        ]),
      ),
    },
  }),
];
