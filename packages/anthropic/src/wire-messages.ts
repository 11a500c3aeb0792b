import { type Message, MillraceError } from '@millrace/core';
import { parsedJson } from '@millrace/core/adapter';
import { cachedSerializer, type Serializer, textAt, type WireNames } from '@millrace/wire';
import { messageBlocks } from './message-blocks.js';
import { splitConversation } from './split-conversation.js';
import { inTurns, type Part, toPart, type Turn, turnText } from './turns.js';

/** A conversation that is written. */
export interface WireMessages {
  /** What nothing that follows can change, as the items of a JSON list; an empty text where there is no such thing. */
  readonly settled: string;
  /** The turns behind it: at least the last two of the user, where there are so many. */
  readonly open: readonly Turn[];
}

/** Turns that are settled. */
interface Page {
  readonly first: Turn['role'] | undefined;
  readonly json: string;
}

/**
 * Makes what writes conversations. The same messages always become the same text, however many follow: signed thinking
 * and the prompt cache both depend on that. So each message is written once, and what was written is kept by pages: to
 * find each of many messages in memory would cost as much as to write it again. It throws `invalidRequest` for media
 * that cannot be sent, and where there is nothing to send.
 */
export const wireMessages = (): Serializer<WireMessages> => {
  const writeParts = cachedSerializer<readonly Part[]>(
    (messages, naming) => messages.flatMap((it) => messageBlocks(it, naming)).map(toPart),
    (parts) => parts.reduce((length, { json }) => length + json.length, 0),
  );
  const writeTurns: Serializer<readonly Turn[]> = (messages, naming) =>
    inTurns(messages, (message) => writeParts([message], naming));
  const settle: Serializer<Page> = (messages, naming) => {
    const turns = writeTurns(messages, naming);
    return { first: turns[0]?.role, json: turns.map(turnText).join(',') };
  };
  const writePage = cachedSerializer(settle, ({ json }) => json.length);

  /** Whether somebody answers what an assistant has said: a turn of the user begins there, whatever else is said. */
  const isAnswer = (messages: readonly Message[], at: number, naming: WireNames): boolean =>
    messages[at]?.role !== 'assistant' &&
    messages[at - 1]?.role === 'assistant' &&
    writeParts(messages.slice(at - 1, at), naming).length > 0;

  return (messages, naming) => {
    const { pages, open } = splitConversation(messages.length, (at) =>
      isAnswer(messages, at, naming),
    );
    const settled = [
      ...pages.map((end, index) => writePage(messages.slice(pages[index - 1] ?? 0, end), naming)),
      settle(messages.slice(pages.at(-1) ?? 0, open), naming),
    ];
    const turns = withoutLastSpace(writeTurns(messages.slice(open), naming));
    const texts = settled.map(({ json }) => json).filter((json) => json !== '');
    const first = open === 0 ? turns[0]?.role : settled[0]?.first;
    if (first === undefined) {
      throw new MillraceError('invalidRequest', 'The messages of the request are empty.');
    }
    const missing = first === 'user' ? [] : [opening];
    return open === 0
      ? { settled: '', open: [...missing, ...turns] }
      : { settled: [...missing.map(turnText), ...texts].join(','), open: turns };
  };
};

/** The API wants a user to begin; a history may begin with a greeting, or be cut. */
const opening: Turn = {
  role: 'user',
  content: [toPart({ type: 'text', text: '(The conversation begins.)' })],
};

/** What a model is to go on with may not end in white space. */
const withoutLastSpace = (turns: readonly Turn[]): readonly Turn[] => {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.type !== 'text') return turns;
  const text = textAt(parsedJson(block.json), 'text').trimEnd();
  const trimmed = toPart({ type: 'text', text });
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }];
};
