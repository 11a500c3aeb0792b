import type { IncomingMessage } from 'node:http';
import { isRecord } from '../is-record.js';
import { apiKey, lookup } from '../lookup.js';
import { chatWire } from './chat-wire.js';
import { messagesWire } from './messages-wire.js';
import type { Part } from './part.js';
import { textAt } from './paths.js';
import { placeIn } from './place-in.js';
import { Refusal } from './refusal.js';
import { responsesWire } from './responses-wire.js';
import { readScript } from './script.js';
import type { Wire } from './wire.js';

/** What a request asks for. */
export interface Asked extends Part {
  readonly isStreamed: boolean;
  /** Milliseconds from one event to the next. */
  readonly gapMs: number;
}

/** Reads a request, as its provider would. Rejects with a `Refusal` what that would not take. */
export const readRequest = async (request: IncomingMessage): Promise<Asked> => {
  const wire = wireOf(request);
  if (wire.keyOf(request.headers) !== apiKey) throw new Refusal('Incorrect API key provided.', 401);
  const body = await bodyOf(request);
  const model = textAt(body, 'model');
  const script = readScript(model);
  if (script === undefined) throw new Refusal(`The model '${model}' plays no script.`, 404);
  const { said, tools } = wire.read(body);
  if (script.turns > 0 && !tools.includes(lookup.name)) {
    throw new Refusal(`The tool '${lookup.name}' is not offered.`);
  }
  const { turn, message } = placeIn(said, script);
  const isAnswer = turn === script.turns;
  const { deltas, gapMs, isWhole } = script;
  const isStreamed = body['stream'] === true;
  return { wire, message, tools: isAnswer ? 0 : script.tools, deltas, gapMs, isWhole, isStreamed };
};

const wires: readonly Wire[] = [chatWire, messagesWire, responsesWire];

const wireOf = ({ method = '', url = '' }: IncomingMessage): Wire => {
  const found = wires.find(({ path }) => method === 'POST' && url === `/v1${path}`);
  if (found === undefined) throw new Refusal(`There is no ${method} ${url} here.`, 404);
  return found;
};

const bodyOf = async (request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> => {
  const parts: Buffer[] = [];
  for await (const part of request) if (Buffer.isBuffer(part)) parts.push(part);
  const body = parsed(Buffer.concat(parts).toString());
  if (!isRecord(body)) throw new Refusal('The body is no JSON object.');
  return body;
};

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
