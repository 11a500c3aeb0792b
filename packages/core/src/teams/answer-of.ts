import { map, type Observable, of } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { MillraceError } from '../errors.js';
import { isRecord } from '../json.js';
import {
  areBlocks,
  type AssistantMessage,
  type Block,
  type ContentBlock,
  isContentBlock,
  plainBlock,
  textBlock,
  textOf,
} from '../message.js';
import { readOutput$ } from '../read-output.js';
import { endReasons, type Reply } from '../reply.js';
import { end, type EndedRun, type OpenRun } from '../run.js';
import { says } from '../say.js';
import type { Validator } from '../schema.js';

/** What a program has come to. */
export interface StepAnswer {
  readonly message: AssistantMessage;
  /** The reply that it is, where it is one: it says more than a message. */
  readonly reply: Reply | undefined;
}

/** Reads what a step has emitted last as the answer of the call, or throws an `invalidState` error that says what it may be. */
export const answerOf = (value: unknown, call: CallInfo): StepAnswer => {
  if (isReply(value)) return { message: replied(value, call), reply: value };
  if (typeof value === 'string' && value !== '') return said(call, value);
  if (isSaid(value)) return said(call, contentOf(value), value.name);
  if (!Array.isArray(value) || value.length === 0) throw unreadable(call);
  const parts: readonly unknown[] = value;
  if (parts.every(isContentBlock)) return said(call, parts.map(plainBlock));
  return said(call, joined(parts.map((part) => blocksOf(part, call))));
};

const said = (
  call: CallInfo,
  content: string | readonly ContentBlock[],
  name?: string,
): StepAnswer => ({
  message: { ...says(call, 'answer', content), ...(name === undefined ? {} : { name }) },
  reply: undefined,
});

/** A message of a call below keeps its id: it may have been streamed under it. */
const replied = ({ id, role, content, name }: Reply, call: CallInfo): AssistantMessage => ({
  id: id.startsWith(`${call.callId}/`) ? id : `${call.callId}/answer`,
  role,
  content: content.filter(({ type }) => type !== 'tool_use'),
  ...(name === undefined ? {} : { name }),
});

interface Said {
  readonly content: readonly Block[];
  readonly name?: string;
}

const isSaid = (value: unknown): value is Said =>
  isRecord(value) &&
  (value['role'] === 'assistant' || value['role'] === 'user') &&
  areBlocks(value['content']) &&
  value['content'].some(isContentBlock) &&
  (value['name'] === undefined || typeof value['name'] === 'string');

/** Of another copy of this package, or read from a file, it is one as well. */
const isReply = (value: unknown): value is Reply =>
  isRecord(value) &&
  value['role'] === 'assistant' &&
  typeof value['id'] === 'string' &&
  areBlocks(value['content']) &&
  endReasons.some((reason) => reason === value['reason']);

const contentOf = ({ content }: Said): readonly ContentBlock[] =>
  content.filter(isContentBlock).map(plainBlock);

/** What one of several has said, under its name. */
const blocksOf = (part: unknown, call: CallInfo): readonly ContentBlock[] => {
  if (typeof part === 'string') return [textBlock(part)];
  if (!isSaid(part) && !isReply(part)) throw unreadable(call);
  const { name } = part;
  const content = contentOf(part);
  return name === undefined ? content : [textBlock(`${name}:\n`), ...content];
};

/** With a blank line between them, and texts that follow each other in one block. */
const joined = (parts: readonly (readonly ContentBlock[])[]): readonly ContentBlock[] =>
  parts
    .flatMap((blocks, index) => (index === 0 ? blocks : [textBlock('\n\n'), ...blocks]))
    .reduce<readonly ContentBlock[]>((before, block) => {
      const last = before.at(-1);
      return last?.type === 'text' && block.type === 'text'
        ? [...before.slice(0, -1), textBlock(last.text + block.text)]
        : [...before, block];
    }, []);

/** Ends a run with an answer: for the reason of the reply that it is, with its output, or one that is read from the text where the call has a schema. */
export const endAnswered$ = (
  run: OpenRun,
  { message, reply }: StepAnswer,
  output: Validator | undefined,
): Observable<EndedRun> => {
  const { reason = 'answer', finish = 'stop', suspensions, output: given } = reply ?? {};
  const ended: EndedRun = {
    ...end(run, reason, message, finish),
    ...(reason === 'suspended' && suspensions !== undefined && { suspensions }),
  };
  const hasOutput = reason === 'answer' || given !== undefined;
  if (output === undefined || !hasOutput) {
    return of(given === undefined ? ended : { ...ended, output: given });
  }
  return readOutput$(output, textOf(message)).pipe(
    map((read) => {
      if (read.valid) return { ...ended, output: read.value };
      throw new MillraceError(
        'invalidResponse',
        `What the steps have answered is no valid output: ${read.problems.join('; ')}`,
        { partial: textOf(message) },
      );
    }),
  );
};

const unreadable = ({ agent }: CallInfo): MillraceError =>
  new MillraceError(
    'invalidState',
    `The steps of the agent '${agent.at(-1) ?? ''}' have emitted something that is no answer. It may be a reply, a message, a text, content blocks, or a list of these.`,
  );
