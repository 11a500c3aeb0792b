import type { CallInfo } from '../call-info.js';
import { taskOf } from '../fitting/task.js';
import type { Message } from '../message.js';
import type { OpenRun } from '../run.js';
import { beforeWaiting, turnStarts } from './turns.js';

/** What of a run may be replaced by a summary. */
export interface Old {
  /** How many of the first messages are old, or stay from among these. */
  readonly upTo: number;
  /** What may go, but for an earlier summary. */
  readonly messages: readonly Message[];
  /** The same with what stays between them: a summary of an answer makes sense with the question. */
  readonly told: readonly Message[];
  /** What was asked: it stays as it is. */
  readonly kept: readonly Message[];
  /** The summary of what was before. */
  readonly recap: Message | undefined;
}

/** Finds what is old in a run: whole turns and whole exchanges with tools that are stored, but for the last of them. */
export const oldOf = (
  { messages, stored }: OpenRun,
  { callId }: Pick<CallInfo, 'callId'>,
  keepTurns: number,
): Old => {
  const places = unitStarts(messages, callId);
  const wanted = places.at(-keepTurns) ?? 0;
  const cut = wanted <= stored ? wanted : (places.findLast((place) => place <= stored) ?? 0);
  const upTo = beforeWaiting(messages, places, cut);
  const isTask = taskOf(messages, callId);
  const isRecap = ({ id }: Message): boolean => id.startsWith(`${callId}/recap/`);
  const first = messages.slice(0, upTo);
  return {
    upTo,
    messages: first.filter((message) => !isTask(message) && !isRecap(message)),
    told: first.filter((message) => !isRecap(message)),
    kept: first.filter(isTask),
    recap: first.find(isRecap),
  };
};

/** Where a turn of the history begins, or a message of the model's in this call. */
const unitStarts = (messages: readonly Message[], callId: string): readonly number[] => {
  const turns = new Set(turnStarts(messages));
  const begins = ({ id, role }: Message, index: number): boolean =>
    id.startsWith(`${callId}/`)
      ? role === 'assistant' && !id.startsWith(`${callId}/input/`)
      : turns.has(index);
  return messages.flatMap((message, index) => (begins(message, index) ? [index] : []));
};
