import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { play } from './play.js';
import { keyOf, refusalOf } from './refusal.js';
import type { Run } from './run.js';
import { createVisit } from './visit.js';

/** What of a server its requests need. */
export interface House {
  /** The scenario under an id. */
  readonly find: (id: string) => Run | undefined;
  /** The origin that no request should be led to. */
  readonly otherOrigin: () => string;
  readonly isOther: boolean;
}

/** Answers requests to `/<id of a scenario>/…` as the scenario says. */
export const serve =
  (house: House): RequestListener =>
  (request, response) => {
    // A client that leaves is no fault of the server.
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    response.socket?.setNoDelay(true);
    void text(request).then(
      (body) => answer(house, request, response, body),
      () => response.destroy(),
    );
  };

const answer = async (
  { find, otherOrigin, isOther }: House,
  request: IncomingMessage,
  response: ServerResponse,
  sent: string,
): Promise<void> => {
  const { url = '', method = '' } = request;
  const [, id = '', path = ''] = /^\/([^/?]+)(.*)$/.exec(url) ?? [];
  const run = find(id);
  if (run === undefined) {
    response.writeHead(404).end();
    return;
  }
  const headers = headersOf(request);
  const body = parsed(sent);
  const refused = refusalOf({ method, path, headers, body }, run.scenario);
  const arrival = { path, atOther: isOther, headers, body, violations: refused?.violations ?? [] };
  const visit = createVisit(request, response, Date.now(), arrival);
  const script = run.next();
  run.add(visit);
  const words = {
    '{{key}}': keyOf(headers),
    '{{self}}': `http://${request.headers.host ?? ''}${url}`,
    '{{other}}': `${otherOrigin()}${url}`,
  };
  await play(refused?.script ?? script, {
    response,
    fill: (template) =>
      Object.entries(words).reduce(
        (filled, [word, value]) => filled.replaceAll(word, value),
        template,
      ),
    wrote: (bytes) => visit.wrote(bytes),
    breakOff: () => visit.breakOff(),
  });
};

const headersOf = ({ headers }: IncomingMessage): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

const parsed = (json: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
};
