import type { ModelChunk } from 'millrace';
import { isRecord } from 'millrace/values';
import {
  at,
  failure,
  faultOf,
  type JsonRecord,
  type Reader,
  textAt,
  textChunks,
} from '@millrace/wire';
import { type CallSource, createChatCalls } from './chat-calls.js';
import { createChatSources, referenceChunks } from './chat-sources.js';
import { chatFacts } from './facts.js';
import { fieldsOf, indexIn, listIn, textIn } from './fields.js';
import { finishChunks } from './finish-reason.js';
import { malformedReason } from './malformed-call.js';
import { createReasoningDetails, detailText } from './reasoning-details.js';
import { chatUsage, usageChunks } from './usage.js';
import type { ReaderSource } from './wire-model.js';

export interface ChatSource extends ReaderSource, CallSource {
  /** See `Profile.finishesWithDone`. */
  readonly finishesWithDone?: boolean | undefined;
}

/**
 * Reads one chat completion, streaming or not: the same mapping reads a `delta` and a `message`. It accepts the
 * variants of all vendors: reasoning in any field, usage in any chunk, content in parts, arguments as an object.
 */
export const chatReader = (source: ChatSource): Reader => {
  const { server, vendor } = source;
  let answer = beginAnswer(source);
  let lastReason = '';

  const finishBy = (reason: string): readonly ModelChunk[] => {
    const { refused, isCalling: hasCalls } = answer;
    const chunks = finishChunks(reason, { server, refused, hasCalls });
    if (chunks.length === 0) return chunks;
    lastReason = reason;
    return [...answer.sources.finish(), ...answer.toolCalls.finish(), ...chunks];
  };

  const read = (data: unknown): readonly ModelChunk[] => {
    const event = fieldsOf(data);
    const chosen = choiceIn(event);
    const { delta, message: complete } = chosen;
    const isWhole = (delta ?? undefined) === undefined && isRecord(complete);
    const again = isWhole ? repeated(complete, answer.streamed) : undefined;
    const message = again === 'same' ? nothing : fieldsOf(delta ?? complete);
    const failed = failedReason(chosen['error'] ?? message['error'], server);
    if (again === 'other') answer = beginAnswer(source);
    const usage = usageIn(event, chosen);
    // A refusal after the finish reason changes what that means.
    const isNewRefusal = lastReason !== '' && !answer.refused && textIn(message['refusal']) !== '';
    const reason = failed ?? (textIn(chosen['finish_reason']) || (isNewRefusal ? lastReason : ''));

    const chunks: ModelChunk[] = again === 'other' ? [restart] : [];
    addContent(chunks, message, answer, source);
    if (!isWhole) noteStreamed(message, answer);
    answer.sources.keep(event);
    if (usage !== undefined) chunks.push(...usageChunks(usage, chatUsage));
    const finish = reason === '' ? none : finishBy(reason);
    if (finish.length > 0 || (usage !== undefined && isRecord(usage))) {
      chunks.push(...chatFacts(event, chosen, usage, vendor), ...finish);
    }
    return answer.details.flush(chunks);
  };
  return {
    read: ({ data }) => read(data),
    readWhole: read,
    usage: (data) => {
      const event = fieldsOf(data);
      return usageChunks(usageIn(event, choiceIn(event)), chatUsage);
    },
    readError: (data) => {
      const reason = malformedReason(at(data, 'error') ?? data);
      return reason === undefined ? [] : answer.details.flush(finishBy(reason));
    },
    readDone: () =>
      source.finishesWithDone === true && lastReason === ''
        ? answer.details.flush(finishBy('stop'))
        : [],
    working: () => answer.toolCalls.held(),
  };
};

const none: readonly ModelChunk[] = [];

/** The first choice. Not every server sends its index. */
const choiceIn = ({ choices }: JsonRecord): JsonRecord => {
  for (const choice of listIn(choices)) {
    const fields = fieldsOf(choice);
    const index = indexIn(fields['index']) ?? 0;
    if (index <= 0 || index === Infinity) return fields;
  }
  return nothing;
};

const usageIn = ({ usage, x_groq: groq }: JsonRecord, choice: JsonRecord): unknown =>
  usage ?? choice['usage'] ?? (groq === undefined ? undefined : fieldsOf(groq)['usage']);

/** Discards what was streamed, because the whole message follows. */
const restart: ModelChunk = {
  type: 'restart',
  why: 'The server sent the whole message after its stream.',
  isSameRequest: true,
};

/** The state of one answer. */
const beginAnswer = (source: ChatSource) => {
  const streamed: Streamed = { texts: [], hasCalls: false };
  return {
    toolCalls: createChatCalls(source),
    sources: createChatSources(source.vendor),
    details: createReasoningDetails(source.vendor),
    refused: false,
    isCalling: false,
    streamed,
  };
};

type Answer = ReturnType<typeof beginAnswer>;

/** Adds the chunks for the content of a message or a delta. */
const addContent = (
  chunks: ModelChunk[],
  message: JsonRecord,
  answer: Answer,
  source: ChatSource,
): void => {
  const { vendor } = source;
  const { content, function_call, reasoning_details, extra_content: extra } = message;
  const thinking = reasoningOf(message);
  const refusal = textIn(message['refusal']);
  const calls = listIn(message['tool_calls']);
  answer.isCalling ||= calls.some(isRecord) || isRecord(function_call);
  answer.refused ||= refusal !== '';
  if (reasoning_details !== undefined) answer.details.add(listIn(reasoning_details));
  if (thinking !== '') chunks.push({ type: 'thinking', text: thinking });
  if (typeof content === 'string') {
    if (content !== '') chunks.push({ type: 'text', text: content });
  } else if (content !== undefined) chunks.push(...partsChunks(content, vendor));
  // Gemini signs text in a field of the message.
  if (isRecord(extra)) chunks.push({ type: 'text', text: '', vendorData: { vendor, data: extra } });
  if (refusal !== '') chunks.push({ type: 'text', text: refusal });
  for (const call of calls) if (isRecord(call)) chunks.push(...answer.toolCalls.read(call));
  if (isRecord(function_call)) chunks.push(...answer.toolCalls.readFunction(function_call));
  if (message['annotations'] !== undefined) chunks.push(...answer.sources.read(message));
};

/**
 * Throws the error in a choice: gateways report the failure of a provider there, and may still finish with `stop`. Returns a
 * reason if the error counts as an answer.
 */
const failedReason = (error: unknown, server: string): string | undefined => {
  if (error === undefined || error === null) return undefined;
  const fault = faultOf({ error });
  const reason = malformedReason(error);
  if (fault !== undefined && reason === undefined) throw failure(server, fault);
  return reason;
};

const nothing: JsonRecord = {};

/** The content of deltas: some servers end with the whole message. */
interface Streamed {
  readonly texts: string[];
  hasCalls: boolean;
}

const noteStreamed = ({ content }: JsonRecord, { streamed, isCalling }: Answer): void => {
  if (typeof content === 'string' && content !== '') streamed.texts.push(content);
  streamed.hasCalls ||= isCalling;
};

/** Whether a whole message repeats the stream before it, or differs; `undefined` if nothing precedes it. */
const repeated = (
  { content, tool_calls, function_call }: JsonRecord,
  streamed: Streamed,
): 'same' | 'other' | undefined => {
  const hasCalls = listIn(tool_calls).length > 0 || isRecord(function_call);
  const isEmpty = !hasCalls && listIn(content).length === 0 && textIn(content) === '';
  if (isEmpty || (streamed.texts.length === 0 && !streamed.hasCalls)) return undefined;
  const isText = !hasCalls && !streamed.hasCalls;
  return isText && content === streamed.texts.join('') ? 'same' : 'other';
};

/** Some servers send the same reasoning in two fields: the first one counts. */
const reasoningOf = ({ reasoning_content, reasoning, reasoning_details }: JsonRecord): string =>
  textIn(reasoning_content) ||
  textIn(reasoning) ||
  (reasoning_details === undefined ? '' : listIn(reasoning_details).map(detailText).join(''));

const partsChunks = (parts: unknown, vendor: string): readonly ModelChunk[] =>
  listIn(parts).flatMap((part) => partChunks(part, vendor));

/** Mistral sends content, including thinking and references, in parts. A part that is not understood is kept. */
const partChunks = (part: unknown, vendor: string): readonly ModelChunk[] => {
  if (typeof part === 'string') return textChunks('text', part);
  switch (at(part, 'type')) {
    case 'text':
      return textChunks('text', textAt(part, 'text'));
    case 'thinking':
      return textChunks('thinking', thoughtOf(at(part, 'thinking')));
    case 'reference':
      return referenceChunks(fieldsOf(part), vendor);
    // `anyMedia` reads it.
    case 'image_url':
      return [];
    default: {
      const kind = textAt(part, 'type');
      return kind === ''
        ? []
        : [{ type: 'block', block: { type: 'vendor', vendor, kind, data: part } }];
    }
  }
};

const thoughtOf = (thinking: unknown): string =>
  typeof thinking === 'string'
    ? thinking
    : listIn(thinking)
        .map((part) => textAt(part, 'text'))
        .join('');
