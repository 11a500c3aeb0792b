import { isRecord } from 'millrace/values';
import { badRequest, fieldOf } from '../inbound.js';
import { plainJson } from '../plain-json.js';

/** A validated verdict. */
export interface ReadVerdict {
  readonly approved: boolean;
  readonly input?: Readonly<Record<string, unknown>>;
  readonly reason?: string;
}

/** The verdict of a client that a stream has asked, as it was sent. */
export interface VerdictOfClient {
  /** The id of the question. */
  readonly id: string;
  readonly verdict: unknown;
}

/** The tool call and the number of a question on it, from 1: a tool with several approvers is asked about again. */
export interface Question {
  readonly toolCallId: string;
  readonly question: number;
}

/** The id of a question in the client: that of the tool call, and from the second question on its number. */
export const questionId = (toolCallId: string, question: number): string =>
  question === 1 ? toolCallId : `${toolCallId}?${question}`;

export const questionOf = (id: string): Question => {
  const [, toolCallId = id, question = '1'] = /^(.+)\?(\d{1,4})$/u.exec(id) ?? [];
  return { toolCallId, question: Number(question) };
};

/** In characters. The model reads the reason, so a client must not fill the context with it. */
const maxReasonLength = 1000;

/** Validates a verdict of a client, or throws an `invalidRequest` error. Ignores unknown fields. */
export const readVerdict = (verdict: unknown): ReadVerdict => {
  if (typeof verdict === 'boolean') return { approved: verdict };
  const approved = fieldOf(verdict, 'approved');
  if (typeof approved !== 'boolean') throw badRequest("'approved' must be true or false");
  const input = fieldOf(verdict, 'input');
  const reason = fieldOf(verdict, 'reason');
  return {
    approved,
    ...(input !== undefined && { input: inputOf(input) }),
    ...(reason !== undefined && { reason: reasonOf(reason) }),
  };
};

const inputOf = (input: unknown): Readonly<Record<string, unknown>> => {
  const plain = plainJson(input);
  if (isRecord(input) && isRecord(plain)) return plain;
  throw badRequest("'input' must be an object of arguments");
};

const reasonOf = (reason: unknown): string => {
  if (typeof reason === 'string' && reason.length <= maxReasonLength) return reason;
  throw badRequest(`'reason' must be a string of up to ${maxReasonLength} characters`);
};
