import type { ModelChunk } from 'millrace';
import { defined } from 'millrace/values';
import { at, listAt, type Reader, textAt } from '@millrace/wire';
import { citationOf } from './citations.js';
import { fieldsOf, textIn } from './fields.js';
import { createOpenItems } from './open-items.js';
import { endChunks, endedBy } from './responses-end.js';
import {
  absorb,
  absorbPart,
  addAnnotation,
  callPart,
  isFilled,
  partOf,
  rank,
  settle,
  valueIn,
} from './responses-items.js';
import { Ledger } from './responses-ledger.js';
import { responsesUsage, usageChunks } from './usage.js';
import type { ReaderSource } from './wire-model.js';

type Chunks = readonly ModelChunk[];
type Event = Readonly<Record<string, unknown>>;

/**
 * Reads one response, streaming or not. Every value of it is sent several times: as deltas, complete, within its item, and
 * within the response. The latter of these override the former; see `Ledger`. The order and the numbers of events
 * do not matter.
 */
export const responsesReader = (source: ReaderSource): Reader => {
  let ledger = new Ledger(source);
  let items = createOpenItems();
  let responseId = '';
  /** A server that fails in the middle may start another response in the same stream. */
  const begin = (id: string): Chunks => {
    const isOther = id !== '' && responseId !== '' && id !== responseId;
    responseId ||= id;
    if (!isOther) return [];
    responseId = id;
    ledger = new Ledger(source);
    items = createOpenItems();
    return [{ type: 'restart', why: 'The vendor started another response.', isSameRequest: true }];
  };
  const end = (response: unknown, status: unknown): Chunks => {
    // Throws if the response failed: nothing of it counts then.
    const ended = endChunks(response, status, source);
    if (ended.finish === undefined) return ended.chunks;
    const { chunks, finish: ofItems } = ledger.conclude(listAt(response, 'output'));
    const finish = ended.finish === 'stop' ? ofItems : ended.finish;
    return [...chunks, ...ended.chunks, { type: 'finish', finish }];
  };
  return {
    read: ({ data }) => {
      const event = fieldsOf(data);
      if (event['type'] === 'response.created') return begin(textAt(event['response'], 'id'));
      items.note(event);
      return lastEvents.has(event['type'])
        ? end(event['response'], endedBy(event))
        : eventChunks(event, ledger, source);
    },
    readWhole: (body) => end(body, at(body, 'status')),
    usage: (data) =>
      usageChunks(at(data, 'response', 'usage') ?? at(data, 'usage'), responsesUsage),
    working: () => items.working(),
    isLast: ({ data }) => lastEvents.has(at(data, 'type')),
  };
};

const lastEvents: ReadonlySet<unknown> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
]);

const eventChunks = (event: Event, ledger: Ledger, source: ReaderSource): Chunks => {
  const { item, output_index: index } = event;
  const itemOf = (type: string) => ledger.itemOf(type, event['item_id'], index);
  switch (event['type']) {
    case 'response.output_text.delta':
      return ledger.delta(itemOf('message'), contentKey(event), textIn(event['delta']));
    case 'response.refusal.delta': {
      const message = itemOf('message');
      partOf(message, contentKey(event)).isRefusal = true;
      return ledger.delta(message, contentKey(event), textIn(event['delta']));
    }
    case 'response.function_call_arguments.delta':
      return ledger.delta(itemOf('function_call'), callPart, valueIn(event['delta']));
    case 'response.custom_tool_call_input.delta':
      return ledger.delta(itemOf('custom_tool_call'), callPart, textIn(event['delta']));
    case 'response.reasoning_summary_text.delta':
      return ledger.delta(itemOf('reasoning'), summaryKey(event, ledger), textIn(event['delta']));
    case 'response.reasoning_text.delta':
      return ledger.delta(itemOf('reasoning'), reasoningKey(event), textIn(event['delta']));
    case 'response.output_item.added':
      return ledger.added(item, index);
    case 'response.output_item.done':
      return ledger.done(item, index);
    default:
      return doneChunks(event, ledger, source);
  }
};

/** The events that complete a value of an item. */
const doneChunks = (event: Event, ledger: Ledger, source: ReaderSource): Chunks => {
  const itemOf = (type: string) => ledger.itemOf(type, event['item_id'], event['output_index']);
  switch (event['type']) {
    case 'response.output_text.done':
      return partDone(event, { text: event['text'] }, ledger);
    case 'response.refusal.done':
      return partDone(event, { refusal: event['refusal'] }, ledger);
    case 'response.content_part.done':
      return at(event['part'], 'type') === 'reasoning_text'
        ? reasoningDone(event, reasoningKey(event), at(event['part'], 'text'), ledger)
        : partDone(event, event['part'], ledger);
    case 'response.output_text.annotation.added':
      return annotationChunks(event, ledger, source);
    case 'response.function_call_arguments.done': {
      const call = itemOf('function_call');
      // Some servers send each field, and leave it empty.
      const name = textIn(event['name']) || undefined;
      absorb(call, defined({ name, arguments: event['arguments'] }), rank.value);
      return ledger.catchUp(call);
    }
    case 'response.custom_tool_call_input.done': {
      const call = itemOf('custom_tool_call');
      settle(partOf(call, callPart), event['input'], rank.value);
      return ledger.catchUp(call);
    }
    case 'response.reasoning_summary_part.added':
      ledger.summaryIndex = event['summary_index'];
      return [];
    case 'response.reasoning_summary_text.done':
      return reasoningDone(event, summaryKey(event, ledger), event['text'], ledger);
    case 'response.reasoning_summary_part.done':
      return reasoningDone(event, summaryKey(event, ledger), at(event['part'], 'text'), ledger);
    case 'response.reasoning_text.done':
      return reasoningDone(event, reasoningKey(event), event['text'], ledger);
    default:
      return [];
  }
};

const reasoningDone = (event: Event, key: string, text: unknown, ledger: Ledger): Chunks => {
  if (textIn(text) === '') return [];
  const reasoning = ledger.itemOf('reasoning', event['item_id'], event['output_index']);
  settle(partOf(reasoning, key), text, rank.value);
  return ledger.catchUp(reasoning);
};

const partDone = (event: Event, part: unknown, ledger: Ledger): Chunks => {
  if (!isFilled(part)) return [];
  const message = ledger.itemOf('message', event['item_id'], event['output_index']);
  absorbPart(message, contentKey(event), part, rank.value);
  return ledger.catchUp(message);
};

const annotationChunks = (event: Event, ledger: Ledger, { vendor }: ReaderSource): Chunks => {
  const { annotation, annotation_index: place } = event;
  if (citationOf(annotation, vendor).length === 0) return [];
  const message = ledger.itemOf('message', event['item_id'], event['output_index']);
  const isNew = addAnnotation(partOf(message, contentKey(event)), annotation, place);
  return isNew ? ledger.catchUp(message) : [];
};

const contentKey = ({ content_index: index }: Event): string => keyOf('', index);
const reasoningKey = ({ content_index: index }: Event): string => keyOf('c', index);
const summaryKey = ({ summary_index: index }: Event, { summaryIndex }: Ledger): string =>
  keyOf('s', index ?? summaryIndex);

const keyOf = (prefix: string, index: unknown): string =>
  typeof index === 'number' ? `${prefix}${index}` : `${prefix}0`;
