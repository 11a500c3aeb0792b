import type { Wire } from '../scenario.js';
import type { Answer } from './answer.js';
import { chatBody, chatStream } from './chat-stream.js';
import { messagesBody, messagesStream } from './messages-stream.js';
import { responsesBody, responsesStream } from './responses-stream.js';

type Build<T> = Readonly<Record<Wire, (answer: Answer) => T>>;

const streams: Build<readonly string[]> = {
  chat: chatStream,
  responses: responsesStream,
  messages: messagesStream,
};

const bodies: Build<Readonly<Record<string, unknown>>> = {
  chat: chatBody,
  responses: responsesBody,
  messages: messagesBody,
};

/** The events of an answer on a wire. */
export const streamOf = (wire: Wire, answer: Answer): readonly string[] => streams[wire](answer);

/** An answer on a wire that does not stream it. */
export const bodyOf = (wire: Wire, answer: Answer): Readonly<Record<string, unknown>> =>
  bodies[wire](answer);
