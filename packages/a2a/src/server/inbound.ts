import { type Message as A2aMessage, type Part, Role } from '@a2a-js/sdk';
import {
  A2AError,
  ContentTypeNotSupportedError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import {
  type ContentBlock,
  type Input,
  isMillraceError,
  textOf,
  toolOutput,
  toolResults,
  type Verdict,
} from 'millrace';
import { isRecord, isSameJson } from 'millrace/values';
import { blockOf } from '../parts.js';
import type { Waiting } from './task-view.js';

export const checkedMessage = (message: A2aMessage | undefined): A2aMessage => {
  if (message === undefined) throw new RequestMalformedError("'message' is missing.");
  if (message.messageId === '') throw new RequestMalformedError("'message.messageId' is missing.");
  if (message.role !== Role.ROLE_USER) {
    throw new RequestMalformedError("'message.role' must be the user role.");
  }
  if (message.parts.length === 0) throw new RequestMalformedError("'message.parts' is empty.");
  return message;
};

/** Validates the id of a client, which becomes part of paths and log lines. */
export const contextIdOf = (id: string): string => {
  if (/^[\w-][\w.:@-]{0,127}$/.test(id)) return id;
  throw new RequestMalformedError(
    "'contextId' must be an id of up to 128 letters, digits and . : @ _ -",
  );
};

export const inputOf = ({ parts }: A2aMessage): Input => {
  const blocks = blocksOf(parts);
  if (blocks.some(({ type }) => type !== 'text')) return blocks;
  const text = blocks.map((block) => textOf({ content: [block] })).join('\n');
  if (text.trim() === '') throw new RequestMalformedError('The message has no text.');
  return text;
};

const blocksOf = (parts: readonly Part[]): readonly ContentBlock[] =>
  parts.map((part) => {
    const block = blockOf(part);
    if (block !== undefined) return block;
    // Refuse URLs: the model provider might fetch them from its own network.
    if (part.content?.$case === 'url') {
      throw new ContentTypeNotSupportedError('Send files as bytes, not as URLs.');
    }
    throw new RequestMalformedError('A part must have text, data, or bytes with a media type.');
  });

/** The decision of a client on an approval. */
export interface Decision {
  readonly token: string;
  readonly verdict: Verdict;
}

export const resultsIn = ({ parts }: A2aMessage, waiting: readonly Waiting[]): Input => {
  const answers = answersIn(parts, waiting);
  const results = waiting.map(({ id }): readonly [string, unknown] => {
    const answer = answers.get(id);
    if (answer === undefined) throw incomplete(waiting);
    return [id, Object.hasOwn(answer, 'result') ? answer['result'] : answer];
  });
  return toolResults(Object.fromEntries(results), { from: 'client' });
};

/** The results that end the wait of tools whose task was cancelled. */
export const cancelledResults = (waiting: readonly Waiting[]): Input =>
  toolResults(
    Object.fromEntries(
      waiting.map(({ id }) => [
        id,
        toolOutput({ content: 'The user cancelled the task.', isError: true }),
      ]),
    ),
    { from: 'client' },
  );

export const decisionsIn = (
  { parts }: A2aMessage,
  waiting: readonly Waiting[],
): readonly Decision[] => {
  const answers = answersIn(parts, waiting);
  const decisions = waiting.flatMap(({ id, token = '' }): readonly Decision[] => {
    const answer = answers.get(id);
    return answer === undefined ? [] : [{ token, verdict: verdictOf(answer, waiting) }];
  });
  if (decisions.length === 0) throw incomplete(waiting);
  const [only, ...others] = decisions;
  const inWords = parts.flatMap(({ content }): readonly (boolean | undefined)[] =>
    content?.$case === 'text' ? [words.get(content.value.trim().toLowerCase())] : [],
  );
  const isDenied = only !== undefined && !isApproval(only.verdict);
  if (waiting.length === 1 && others.length === 0 && inWords.includes(isDenied))
    throw answeredTwice();
  return decisions;
};

const isApproval = (verdict: Verdict): boolean =>
  typeof verdict === 'boolean' ? verdict : verdict.approved;

type Answer = Readonly<Record<string, unknown>>;

/**
 * The answers by the ids of the tools that wait. A data part with a `toolCallId` names one; the message answers the
 * only one if it does not.
 */
const answersIn = (
  parts: readonly Part[],
  waiting: readonly Waiting[],
): ReadonlyMap<string, Answer> => {
  const all = dataIn(parts);
  const named = all.flatMap((data): readonly (readonly [string, Answer])[] => {
    const id = isRecord(data) && Object.hasOwn(data, 'toolCallId') ? data['toolCallId'] : undefined;
    return isRecord(data) && typeof id === 'string' ? [[id, data]] : [];
  });
  if (named.length > 0) {
    const unknown = named.find(([id]) => !waiting.some((it) => it.id === id));
    if (unknown !== undefined) throw incomplete(waiting);
    // An answer that names no tool: which one it answers is not known.
    if (all.filter(isAnswer).length > named.filter(([, it]) => isAnswer(it)).length) {
      throw incomplete(waiting);
    }
    return oneForEach(named);
  }
  const [only] = waiting;
  if (only === undefined || waiting.length > 1) throw incomplete(waiting);
  return new Map([[only.id, answerOf(parts, only)]]);
};

/** Other data of a client may come beside an answer. */
const isAnswer = (data: unknown): data is Answer =>
  isRecord(data) && (Object.hasOwn(data, 'approved') || Object.hasOwn(data, 'result'));

/** Throws if two different answers name the same tool: the client cannot have meant both. */
const oneForEach = (
  answers: readonly (readonly [id: string, answer: Answer])[],
): ReadonlyMap<string, Answer> => {
  const byId = new Map<string, Answer>();
  for (const [id, answer] of answers) {
    if (byId.has(id) && !isSameJson(byId.get(id), answer)) {
      throw answeredTwice();
    }
    byId.set(id, answer);
  }
  return byId;
};

const answeredTwice = (): Error =>
  new RequestMalformedError(
    'The message answers the same question twice, in different ways. Send one answer to each question.',
  );

const dataIn = (parts: readonly Part[]): readonly unknown[] =>
  parts.flatMap(({ content }): readonly unknown[] =>
    content?.$case === 'data' ? [content.value] : [],
  );

const answerOf = (parts: readonly Part[], { id, asks }: Waiting): Answer => {
  const data = dataIn(parts);
  if (asks === 'approval') {
    const answers = data.filter(isAnswer);
    const verdict = oneForEach(answers.map((it) => [id, it])).get(id) ?? data.find(isRecord);
    if (verdict !== undefined) return verdict;
  }
  if (parts.length === 1 && data.length === 1) return { result: data[0] };
  const content = blocksOf(parts);
  const text = content.every(({ type }) => type === 'text') ? textOf({ content }) : undefined;
  return { result: text ?? toolOutput({ content }) };
};

const verdictOf = (answer: Answer, waiting: readonly Waiting[]): Verdict => {
  const { approved, reason, input, result } = answer;
  const word = typeof result === 'string' ? words.get(result.trim().toLowerCase()) : undefined;
  if (word !== undefined) return { approved: word };
  if (typeof approved !== 'boolean') throw incomplete(waiting);
  const why = typeof reason === 'string' ? { reason } : {};
  if (!approved) return { approved, ...why };
  return { approved, ...why, ...(isRecord(input) && { input }) };
};

const words: ReadonlyMap<string, boolean> = new Map([
  ['yes', true],
  ['approve', true],
  ['approved', true],
  ['no', false],
  ['deny', false],
  ['denied', false],
]);

const incomplete = (waiting: readonly Waiting[]): Error => {
  const forms = waiting.map(({ id, asks }) =>
    asks === 'result'
      ? `{ "toolCallId": ${JSON.stringify(id)}, "result": … }`
      : `{ "toolCallId": ${JSON.stringify(id)}, "approved": true or false }, or the text yes or no`,
  );
  return new RequestMalformedError(
    `The task waits for an answer. Send data parts of this form: ${forms.join('; ')}.`,
  );
};

/** The error of the protocol for a refusal; `undefined` for a failure of the server. */
export const refusalOf = (error: unknown): Error | undefined => {
  if (error instanceof A2AError) return error;
  if (!isMillraceError(error)) return undefined;
  const { code, status, userMessage } = error;
  if (status === 404) return new TaskNotFoundError('There is no such task.');
  switch (code) {
    case 'invalidRequest':
      return new RequestMalformedError(userMessage);
    case 'invalidResume':
    case 'conflict':
      return new UnsupportedOperationError(userMessage);
    default:
      return undefined;
  }
};
