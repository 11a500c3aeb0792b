import {
  type Message,
  textBlock,
  toolCallsOf,
  type ToolMessage,
  type ToolResultBlock,
} from './message.js';

/** Describes a tool call that is not followed by exactly one result, in order; `undefined` if all are paired. */
export const unpaired = (messages: readonly Message[]): string | undefined => {
  const fault = messages.find((message, index) => {
    if (message.role === 'tool') return messages[index - 1]?.role !== 'assistant';
    const next = messages[index + 1];
    const calls = message.role === 'assistant' ? toolCallsOf(message).map(({ id }) => id) : [];
    const answered = next?.role === 'tool' ? next.content.map((it) => it.toolCallId) : [];
    return calls.length !== answered.length || calls.some((id, at) => id !== answered[at]);
  });
  return fault === undefined
    ? undefined
    : `a tool call without exactly one result, or a result without its tool call (at the message '${fault.id}')`;
};

/** Pairs each tool call with exactly one result: adds error results, and drops results without a tool call. */
export const paired = (messages: readonly Message[]): readonly Message[] =>
  messages.flatMap((message, index): readonly Message[] => {
    if (message.role === 'tool') return [];
    const calls = message.role === 'assistant' ? toolCallsOf(message) : [];
    if (calls.length === 0) return [message];
    const answers = resultsAfter(messages, index);
    const results = new Map<string, ToolResultBlock>();
    for (const result of answers.flatMap(({ content }) => content)) {
      if (!results.has(result.toolCallId)) results.set(result.toolCallId, result);
    }
    const content = calls.map(({ id }) => results.get(id) ?? noResult(id));
    return [message, { id: answers[0]?.id ?? `${message.id}/results`, role: 'tool', content }];
  });

/** The messages of results right after a message. */
const resultsAfter = (messages: readonly Message[], index: number): readonly ToolMessage[] => {
  const answers: ToolMessage[] = [];
  for (let at = index + 1; ; at += 1) {
    const message = messages[at];
    if (message?.role !== 'tool') return answers;
    answers.push(message);
  }
};

const noResult = (toolCallId: string): ToolResultBlock => ({
  type: 'tool_result',
  toolCallId,
  content: [textBlock('No result: the call ended first. The tool may have run.')],
  isError: true,
});
