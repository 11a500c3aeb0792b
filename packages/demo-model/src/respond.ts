import type { ModelRequest } from 'millrace';
import { introduce, writeAnswer } from './answer.js';
import { readTool } from './choose-tool.js';
import { readConversation } from './conversation.js';
import { type Call, forcedCall, plan } from './plan.js';

/** The response to a request: tool calls, or an answer. */
export interface Response {
  readonly thinking: string;
  readonly calls: readonly Call[];
  readonly text: string;
}

/** Decides what to do about a request. A pure function: the same request always gets the same response. */
export const respond = (request: ModelRequest): Response => {
  const { tools: declared = [], toolChoice } = request;
  const forcedName = typeof toolChoice === 'object' ? toolChoice.name : undefined;
  const tools = declared.filter(({ name }) => name === (forcedName ?? name)).map(readTool);
  const conversation = readConversation(request);
  const { question, rounds } = conversation;
  const isNew = rounds.length === 0;
  const isForced = isNew && (forcedName !== undefined || toolChoice === 'required');
  if (isNew && !isForced && isGreeting(question)) {
    return { thinking: 'No tool to call. ', calls: [], text: introduce(tools) };
  }
  const planned = plan(conversation, tools);
  const needsCall = isForced && planned.calls.length === 0;
  const calls = needsCall ? forcedCall(question, tools) : planned.calls;
  if (calls.length > 0) {
    return { thinking: `Calling ${calls.map(describeCall).join(', ')}. `, calls, text: '' };
  }
  const count = rounds.flat().length;
  const results = `${count} result${count === 1 ? '' : 's'}`;
  const thinking = count === 0 ? 'No tool to call. ' : `Answering from ${results}. `;
  return { thinking, calls: [], text: writeAnswer(planned, conversation, tools) };
};

/** A greeting, or a question about the model itself. */
const isGreeting = (question: string): boolean =>
  question.length < 120 &&
  (/^[\s\p{P}]*(?:(?:hi|hello|hey|help|there|good (?:morning|afternoon|evening))[\s\p{P}]*)*$/iu.test(
    question,
  ) ||
    /\b(?:(?:who|what) are you|what can (?:you do|i ask)|what are your tools)\b/iu.test(question));

const describeCall = ({ name, input }: Call): string =>
  `${name}(${Object.values(input)
    .map((it) => JSON.stringify(it).slice(0, 80))
    .join(', ')})`;
