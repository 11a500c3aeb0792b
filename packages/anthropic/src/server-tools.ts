import type { AssistantBlock, AssistantMessage, Message, VendorBlock } from 'millrace';
import { textAt } from '@millrace/wire';
import { fieldsBack, vendor } from './vendor-block.js';

/**
 * Leaves out what the API rejects: calls of tools that Anthropic runs without their results, and results without
 * their calls. A call may wait for its result until the answer ends: at the end of the conversation (`pause_turn`), and beside calls of
 * your own tools, after which Anthropic runs it. A message of the user ends the answer; the call was cut off by `max_tokens` or an
 * interrupt. The same messages always become the same objects.
 */
export const createServerToolPairs = (): ((messages: readonly Message[]) => readonly Message[]) => {
  /** The messages without such tools that the last conversation began with: a message always has the same ones before it. */
  let [count, last]: [number, Message | undefined] = [0, undefined];
  return (messages) => {
    const start = last !== undefined && messages[count - 1] === last ? count : 0;
    for (let index = start; index < messages.length; index += 1) {
      const message = messages[index];
      if (message !== undefined && hasServerTool(message)) return paired(messages);
    }
    const end = messages.at(-1);
    if (Object.isFrozen(end)) [count, last] = [messages.length, end];
    return messages;
  };
};

const paired = (messages: readonly Message[]): readonly Message[] => {
  const result: Message[] = [];
  let start = 0;
  for (let end = 0; end <= messages.length; end += 1) {
    const message = messages[end];
    if (message !== undefined && !endsAnswer(message)) continue;
    const answer = messages.slice(start, end);
    const unpaired = unpairedIn(answer, message === undefined);
    result.push(...answer.map((it) => without(it, unpaired)));
    if (message !== undefined) result.push(message);
    start = end + 1;
  }
  return result;
};

/** Results of tools continue an answer, unless media have to follow them. */
const endsAnswer = (message: Message): boolean =>
  message.role === 'user' ||
  (message.role === 'tool' &&
    message.content.some(
      ({ isError, content }) => isError && content.some(({ type }) => type !== 'text'),
    ));

/** The IDs of calls to leave out of one answer, with their results and with what they have called. */
const unpairedIn = (answer: readonly Message[], isOpen: boolean): ReadonlySet<string> => {
  const callers = new Map<string, string>();
  const unpaired = new Set<string>();
  const waiting = new Set<string>();
  for (const block of answer.flatMap(blocksOf)) {
    const [call, result, caller] = [callId(block), resultId(block), callerOf(block)];
    if (caller !== '' && !callers.has(caller)) unpaired.add(caller);
    if (call !== '') {
      callers.set(call, caller);
      waiting.add(call);
    }
    if (result !== '' && !waiting.delete(result)) unpaired.add(result);
  }
  if (!isOpen) waiting.forEach((id) => unpaired.add(id));
  // The API rejects the calls of a call that is left out.
  let before = -1;
  while (before < unpaired.size) {
    before = unpaired.size;
    for (const [call, caller] of callers) if (unpaired.has(caller)) unpaired.add(call);
  }
  return unpaired;
};

const blocksOf = (message: Message): readonly AssistantBlock[] =>
  message.role === 'assistant' ? message.content : [];

const hasServerTool = (message: Message): boolean =>
  message.role === 'assistant' &&
  message.content.some((block) => callId(block) + resultId(block) + callerOf(block) !== '');

const callId = (block: AssistantBlock): string =>
  isOfVendor(block) && block.kind.endsWith('_tool_use') ? textAt(block.data, 'id') : '';

const resultId = (block: AssistantBlock): string =>
  isOfVendor(block) && block.kind.endsWith('_tool_result') ? textAt(block.data, 'tool_use_id') : '';

const isOfVendor = (block: AssistantBlock): block is VendorBlock =>
  block.type === 'vendor' && block.vendor === vendor;

/** The call whose code made this one. */
const callerOf = (block: AssistantBlock): string => {
  if (isOfVendor(block)) return textAt(block.data, 'caller', 'tool_id');
  return block.type === 'tool_call'
    ? textAt(fieldsBack(block.vendorData), 'caller', 'tool_id')
    : '';
};

/** Messages without some of their blocks, by the IDs of these. */
const known = new WeakMap<Message, Map<string, Message>>();

const without = (message: Message, unpaired: ReadonlySet<string>): Message => {
  if (unpaired.size === 0 || message.role !== 'assistant') return message;
  const kept = message.content.flatMap((block) => fitted(block, unpaired));
  if (kept.every((block, index) => block === message.content[index])) {
    if (kept.length === message.content.length) return message;
  }
  const key = [...unpaired].join(' ');
  const made = known.get(message) ?? new Map<string, Message>();
  const same = made.get(key);
  if (same !== undefined) return same;
  const changed: AssistantMessage = Object.freeze({ ...message, content: Object.freeze(kept) });
  known.set(message, made.set(key, changed));
  return changed;
};

const fitted = (
  block: AssistantBlock,
  unpaired: ReadonlySet<string>,
): readonly AssistantBlock[] => {
  const isLeftOut = unpaired.has(callId(block) || resultId(block));
  if (!isLeftOut && !unpaired.has(callerOf(block))) return [block];
  if (block.type !== 'tool_call') return [];
  // The tool has run all the same.
  const { caller: _, ...data } = fieldsBack(block.vendorData);
  const vendorData = Object.freeze({ vendor, data: Object.freeze(data) });
  return [Object.freeze({ ...block, vendorData })];
};
