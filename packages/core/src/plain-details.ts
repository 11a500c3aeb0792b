import { parsedJson } from './json.js';
import type { Message, ToolResultBlock } from './message.js';

/** What a tool gives for user interfaces may be anything: what JSON cannot hold of it is left out where a result is written down. */
export const withPlainDetails = ({ details, ...result }: ToolResultBlock): ToolResultBlock => {
  const plain = details === undefined ? undefined : plainOf(details);
  return plain === undefined ? result : { ...result, details: plain };
};

export const withPlainResults = (messages: readonly Message[]): readonly Message[] =>
  messages.map((message) =>
    message.role === 'tool'
      ? { ...message, content: message.content.map(withPlainDetails) }
      : message,
  );

const plainOf = (details: unknown): unknown => {
  try {
    const text: unknown = JSON.stringify(details);
    return typeof text === 'string' ? parsedJson(text) : undefined;
  } catch {
    return undefined;
  }
};
