import { type Message, MillraceError } from 'millrace';
import { parsedJson } from 'millrace/values';
import { cachedSerializer, type Serializer, textAt, type WireNames } from '@millrace/wire';
import { messageBlocks } from './message-blocks.js';
import { createServerToolPairs } from './server-tools.js';
import { splitConversation } from './split-conversation.js';
import type { CacheTime, MarkBudget } from './cache-marks.js';
import { inTurns, marksIn, type Part, toPart, type Turn, turnText, withoutMarks } from './turns.js';

export interface WireMessages {
  /** The messages that later ones cannot affect, with the user's cache breakpoints while the budget lasts. */
  readonly settled: (budget: MarkBudget) => readonly string[];
  /** The remaining turns, which include the last two user turns. */
  readonly open: readonly Turn[];
}

/** Consecutive messages, as items of a JSON array; or `''`. */
interface Page {
  readonly first: Turn['role'] | undefined;
  readonly json: string;
  /** The user's cache breakpoints in it, and the page without them. */
  readonly marks: readonly CacheTime[];
  readonly bare: string;
}

/**
 * Creates a serializer of conversations. The same messages always become the same JSON, because signed thinking and the
 * prompt cache depend on that. Each message is cached, and settled ones in pages, because looking up each of many would
 * cost as much as serializing it again. It throws `invalidRequest` for unsupported media and empty requests.
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
    const marks = marksIn(turns);
    const json = turns.map(turnText).join(',');
    const bare = marks.length === 0 ? json : withoutMarks(turns).map(turnText).join(',');
    return { first: turns[0]?.role, json, marks, bare };
  };
  const writePage = cachedSerializer(settle, ({ json }) => json.length);
  const pairs = createServerToolPairs();

  /** Whether a user turn starts at a message because it follows a non-empty assistant message. */
  const isAnswer = (messages: readonly Message[], at: number, naming: WireNames): boolean =>
    messages[at]?.role !== 'assistant' &&
    messages[at - 1]?.role === 'assistant' &&
    writeParts(messages.slice(at - 1, at), naming).length > 0;

  return (given, naming) => {
    const messages = pairs(given);
    const { pages, open } = splitConversation(messages.length, (at) =>
      isAnswer(messages, at, naming),
    );
    const settled = [
      ...pages.map((end, index) => writePage(messages.slice(pages[index - 1] ?? 0, end), naming)),
      settle(messages.slice(pages.at(-1) ?? 0, open), naming),
    ];
    const turns = withoutLastSpace(writeTurns(messages.slice(open), naming));
    const first = open === 0 ? turns[0]?.role : settled[0]?.first;
    if (first === undefined) {
      throw new MillraceError('invalidRequest', 'The messages of the request are empty.');
    }
    const missing = first === 'user' ? [] : [opening];
    return open === 0
      ? { settled: () => [], open: [...missing, ...turns] }
      : {
          settled: (budget) => [...missing.map(turnText), ...markedPages(settled, budget)],
          open: turns,
        };
  };
};

/** The newest breakpoints are kept, because each covers the messages before it. */
const markedPages = (pages: readonly Page[], budget: MarkBudget): readonly string[] =>
  pages
    .toReversed()
    .map(({ json, marks, bare }) => (marks.every(budget.takeOwn) ? json : bare))
    .toReversed();

/** Inserted because the API expects a user message first, but a history may start with a greeting or be truncated. */
const opening: Turn = {
  role: 'user',
  content: [toPart({ type: 'text', text: '(The conversation begins.)' })],
};

/** The API rejects trailing white space in an assistant message that the model should continue. */
const withoutLastSpace = (turns: readonly Turn[]): readonly Turn[] => {
  const last = turns.at(-1);
  const block = last?.content.at(-1);
  if (last?.role !== 'assistant' || block?.type !== 'text') return turns;
  const text = textAt(parsedJson(block.json), 'text').trimEnd();
  const trimmed = toPart({ type: 'text', text });
  return [...turns.slice(0, -1), { ...last, content: [...last.content.slice(0, -1), trimmed] }];
};
