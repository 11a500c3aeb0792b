import { type Message, suspensionsIn, textOf, toolCallsOf } from 'millrace';
import { itemOf } from '../script/script-agent.js';
import { isHint } from '../script/script-model.js';

/** Writes a conversation as lines that are the same however often it was broken off. Of uncertain items it does not say what came of them. */
export const linesOf = (
  messages: readonly Message[],
  uncertain: ReadonlySet<string> = new Set(),
): readonly string[] => {
  const results = resultsOf(messages);
  // What a call below has left open is so for the tool that has made it.
  const isOpen = (item: string): boolean =>
    [...uncertain].some((open) => open === item || open.startsWith(`${item}.`));
  return messages.flatMap((message) => {
    // Whether a hint still reaches a call that is killed is open: what it tells is held against what it keeps.
    if (message.role === 'user') return isHint(message) ? [] : [`user: ${textOf(message)}`];
    if (message.role === 'tool') return [];
    const uses = toolCallsOf(message);
    // The answer tells what came of all of them.
    const words = uses.length === 0 && uncertain.size > 0 ? '?' : textOf(message);
    return [
      `assistant: ${words}`,
      ...uses.map((use) => {
        const item = itemOf(use);
        return `${use.name} ${item}: ${isOpen(item) ? '?' : (results.get(use.id) ?? 'none')}`;
      }),
    ];
  });
};

const resultsOf = (messages: readonly Message[]): ReadonlyMap<string, string> =>
  new Map(
    messages.flatMap((message) =>
      message.role === 'tool'
        ? message.content.map((it) => [
            it.toolCallId,
            `${textOf(it)}${it.isError ? ' (error)' : ''}`,
          ])
        : [],
    ),
  );

/** What is wrong with a conversation, whatever was said: a tool use without exactly one result, out of order, or still waiting; a message twice. */
export const faultsIn = (messages: readonly Message[]): readonly string[] => {
  const unpaired = messages.flatMap((message, index) => {
    if (message.role !== 'assistant') return [];
    const asked = toolCallsOf(message).map(({ id }) => id);
    const next = messages[index + 1];
    const answered = next?.role === 'tool' ? next.content.map(({ toolCallId }) => toolCallId) : [];
    return asked.length === 0 || asked.join() === answered.join()
      ? []
      : [`of ${message.id} the uses ${asked.join()} have the results ${answered.join()}`];
  });
  const ids = messages.map(({ id }) => id);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  return [
    ...unpaired,
    ...twice.map((id) => `the message ${id} is there twice`),
    ...suspensionsIn(messages).map(({ toolCall }) => `${toolCall.id} still waits for its result`),
  ];
};

/** What the last message says, piece by piece, and what the results of all tools say: they must be the same. */
export const isAnswered = (messages: readonly Message[]): boolean => {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return false;
  const said = messages.flatMap((message) => (message.role === 'tool' ? message.content : []));
  const results = said.filter(({ suspended }) => suspended === undefined).map(textOf);
  return piecesOf(`Done: ${results.join('; ')}`) === piecesOf(textOf(last));
};

const piecesOf = (words: string): string => words.split('; ').map(bare).toSorted().join('\n');

const bare = (piece: string): string => piece.replaceAll('Done: ', '');
