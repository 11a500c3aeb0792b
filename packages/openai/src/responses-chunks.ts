import type { ModelChunk } from '@millrace/core';
import { isRecord } from '@millrace/core/values';
import {
  at,
  blockIndex,
  countAt,
  encodeSignature,
  type JsonRecord,
  listAt,
  type Reader,
  signatureChunks,
  textAt,
  textChunks,
} from '@millrace/wire';
import { fieldsOf, textIn } from './fields.js';
import { createOpenItems } from './open-items.js';
import { endChunks, endedBy } from './responses-end.js';
import type { ReaderSource } from './wire-model.js';

type Chunks = readonly ModelChunk[];

/** The state of an answer while it is read. */
interface Answer extends ReaderSource {
  /** Indexes of the tool calls whose arguments were streamed. */
  readonly callsWithArguments: Set<unknown>;
  /** Positions of the texts that were streamed. */
  readonly streamedTexts: Set<string>;
  refused: boolean;
  newest: number;
}

/**
 * Reads one response, streaming or not. Items that must be sent back unchanged (reasoning, and calls of built-in tools)
 * become signatures of thinking. It ignores repeated events.
 */
export const responsesReader = (source: ReaderSource): Reader => {
  const answer: Answer = {
    ...source,
    callsWithArguments: new Set(),
    streamedTexts: new Set(),
    refused: false,
    newest: 0,
  };
  const items = createOpenItems();
  return {
    read: ({ data }) => {
      const event = fieldsOf(data);
      items.note(event);
      return isRepeat(event, answer) ? [] : eventChunks(event, answer);
    },
    readWhole: (body) => [
      ...listAt(body, 'output').flatMap((item, index) => wholeItem(item, index, answer)),
      ...endChunks(body, at(body, 'status'), answer),
    ],
    working: items.working,
    isLast: ({ data }) => lastEvents.has(at(data, 'type')),
  };
};

const lastEvents: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete']);

/** Some servers number all events with 0, and keep-alive events with any number. */
const isRepeat = (event: JsonRecord, answer: Answer): boolean => {
  const isNumbered = textIn(event['type']).startsWith('response.');
  const number = isNumbered ? (countAt(event, 'sequence_number') ?? 0) : 0;
  if (number > 0 && number <= answer.newest) return true;
  answer.newest = Math.max(answer.newest, number);
  return false;
};

const eventChunks = (event: JsonRecord, answer: Answer): Chunks => {
  const { type, item, output_index: index } = event;
  const delta = textIn(event['delta']);
  switch (type) {
    case 'response.output_text.delta':
      answer.streamedTexts.add(positionOf(event));
      return textChunks('text', delta);
    case 'response.refusal.delta':
      answer.streamedTexts.add(positionOf(event));
      return refusalChunks(delta, answer);
    case 'response.output_text.done':
    case 'response.refusal.done':
      return doneTextChunks(event, positionOf(event), answer);
    case 'response.reasoning_summary_text.delta':
    case 'response.reasoning_text.delta':
      return textChunks('thinking', delta);
    case 'response.reasoning_summary_part.added':
      return textChunks('thinking', event['summary_index'] === 0 ? '' : '\n\n');
    case 'response.output_item.added':
      return isCall(item) ? [callChunk(item, index, answer)] : phaseChunks(item, answer);
    case 'response.function_call_arguments.delta':
      answer.callsWithArguments.add(index);
      return [{ type: 'toolCall', ...blockIndex(index), json: delta }];
    case 'response.output_item.done':
      return doneChunks(item, index, answer);
    case 'response.completed':
    case 'response.incomplete':
    case 'response.failed':
      return endChunks(event['response'], endedBy(event), answer);
    default:
      return [];
  }
};

/** The position of text in an answer, if the server sends it. */
const positionOf = ({ output_index, content_index }: JsonRecord): string =>
  positionKey(output_index, content_index);

const positionKey = (item: unknown, part: unknown): string =>
  typeof item === 'number' && typeof part === 'number' ? `${item}/${part}` : unknownPosition;

const unknownPosition = 'somewhere';

/** A completed text, unless it was streamed. */
const doneTextChunks = (part: unknown, place: string, answer: Answer): Chunks => {
  const { streamedTexts } = answer;
  if (streamedTexts.has(place) || streamedTexts.has(unknownPosition)) return [];
  if (place === unknownPosition && streamedTexts.size > 0) return [];
  streamedTexts.add(place);
  return partChunks(part, answer);
};

const doneChunks = (item: unknown, index: unknown, answer: Answer): Chunks =>
  at(item, 'type') === 'message'
    ? listAt(item, 'content').flatMap((part, place) =>
        doneTextChunks(part, positionKey(index, place), answer),
      )
    : itemChunks(item, index, answer);

const partChunks = (part: unknown, answer: Answer): Chunks => [
  ...textChunks('text', textAt(part, 'text')),
  ...refusalChunks(textAt(part, 'refusal'), answer),
];

const refusalChunks = (text: string, answer: Answer): Chunks => {
  answer.refused ||= text !== '';
  return textChunks('text', text);
};

/** The phase of a message (commentary or answer), which newer models want back. */
const phaseChunks = (item: unknown, { vendor }: Answer): Chunks => {
  const phase = textAt(item, 'phase');
  return phase === ''
    ? []
    : signatureChunks(encodeSignature(vendor, 'phase', phase), { redacted: true });
};

const isCall = (item: unknown): boolean => at(item, 'type') === 'function_call';

const callChunk = (item: unknown, index: unknown, { toolName }: Answer) => ({
  type: 'toolCall' as const,
  ...blockIndex(index),
  id: textAt(item, 'call_id') || textAt(item, 'id'),
  name: toolName(textAt(item, 'name')),
});

/** A completed item: a call whose arguments were not streamed, or an item to send back. */
const itemChunks = (item: unknown, index: unknown, answer: Answer): Chunks => {
  if (!isCall(item)) return returnedItemChunks(item, answer.vendor);
  if (answer.callsWithArguments.has(index)) return [];
  return [{ ...callChunk(item, index, answer), json: textAt(item, 'arguments') }];
};

const wholeItem = (item: unknown, index: number, answer: Answer): Chunks =>
  at(item, 'type') === 'message'
    ? [
        ...phaseChunks(item, answer),
        ...listAt(item, 'content').flatMap((part) => partChunks(part, answer)),
      ]
    : [...textChunks('thinking', reasoningText(item)), ...itemChunks(item, index, answer)];

/** The items that the vendor wants back: reasoning, and calls of built-in tools. */
const returnedItems: ReadonlySet<unknown> = new Set([
  'reasoning',
  'code_interpreter_call',
  'compaction',
  'file_search_call',
  'image_generation_call',
  'mcp_call',
  'mcp_list_tools',
  'tool_search_call',
  'tool_search_output',
  'web_search_call',
]);

const returnedItemChunks = (item: unknown, vendor: string): Chunks => {
  if (!isRecord(item) || !returnedItems.has(item['type'])) return [];
  return signatureChunks(encodeSignature(vendor, 'item', item), {
    redacted: reasoningText(item) === '',
  });
};

const reasoningText = (item: unknown): string =>
  [...listAt(item, 'summary'), ...listAt(item, 'content')]
    .map((part) => textAt(part, 'text'))
    .filter((text) => text !== '')
    .join('\n\n');
