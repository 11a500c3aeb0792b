import { EMPTY, map, mergeMap, of } from 'rxjs';
import type { Interceptor, InterceptorOptions } from '../../seams/interceptor.js';
import type { InputMessage } from '../../seams/input.js';
import { on, onCall } from '../../seams/interceptor.js';
import { prepare } from './prepare.js';
import { transformChunks } from './guard-output.js';
import type { AfterModel, BeforeModel, EventOf } from '../../events.js';
import type { ContentChunk } from '../../models/chunk-transform.js';
import type {
  AssistantBlock,
  AssistantMessage,
  Citation,
  ContentBlock,
  Message,
  ToolResultBlock,
  VendorData,
} from '../../values/message.js';
import { misuse } from '../../values/errors.js';
import { isRecord } from '../../values/json.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, isFlag, isNumber, isText, wholeNumber } from '../../values/options.js';
import { findRanges, type Patterns, readPatterns, replaceRanges, type Range } from './patterns.js';
import { characterStart } from '../../values/surrogates.js';
import type { HeldText, Release } from './guard-output.js';
import { createTextWindow, holdFrom, holdMatch, textChunk, textWindow } from './guard-output.js';

export interface RedactOptions extends InterceptorOptions {
  /** Replacement of a match, or a function that returns it. Default: `[redacted]`. */
  readonly replacement?: string | ((match: string) => string) | undefined;
  /** Characters to hold back. They are missing from interrupted replies and `partial` text. Default: 128. */
  readonly window?: number | undefined;
}

/**
 * Removes matches from a call: from its input and steered messages, from everything the model is sent (history and
 * system prompt included), from tool results, their `details` and progress, and from what the model writes, while it
 * streams. Errors and other objects in progress and details become the plain data that was searched; the last
 * characters of progress are held back. Citations and what a vendor adds are covered. Not covered: thinking (signed by the provider), tool arguments, and the input
 * in the record of a journal. A pattern that matches the empty string, such as `/a?/`, is refused with `config`.
 *
 * A match longer than the window is removed while it streams if its beginning, within the window, already matches and
 * each further character extends it, as in `/sk-[a-z]+/`. Any other may be shown in part. It is not stored, unless a
 * part of it matches by itself: `/key(-[a-z]{600})?/` removes `key` and leaves the rest.
 */
export const redact = (secrets: Patterns, options: RedactOptions = {}): readonly Interceptor[] => {
  const patterns = readPatterns('redact()', secrets);
  check(options, patterns);
  const { replacement = '[redacted]', window = 128, name = 'redact', ...others } = options;
  const placement = { ...others, name };
  const replace = typeof replacement === 'function' ? replacement : () => replacement;
  const replaceOptions = { patterns, window, replace };
  const clean = (text: string): string => {
    const ranges = findRanges(patterns, text);
    return ranges.length === 0 ? text : replaceRanges(text, ranges, replace);
  };
  const cleanVendor = <Block extends object>(
    block: Block & { readonly vendorData?: VendorData },
  ): Block =>
    block.vendorData === undefined
      ? block
      : {
          ...block,
          vendorData: { ...block.vendorData, data: redactValue(block.vendorData.data, clean) },
        };
  const cleanCitation = (citation: Citation): Citation => {
    const { url, title, citedText } = citation;
    return cleanVendor({
      ...citation,
      ...(url === undefined ? {} : { url: clean(url) }),
      ...(title === undefined ? {} : { title: clean(title) }),
      ...(citedText === undefined ? {} : { citedText: clean(citedText) }),
    });
  };
  const cleanBlock = <Block extends ContentBlock | AssistantBlock>(block: Block): Block => {
    if (block.type === 'vendor') return { ...block, data: redactValue(block.data, clean) };
    if (block.type === 'file' && block.name !== undefined) {
      return { ...block, name: clean(block.name) };
    }
    if (block.type !== 'text') return block;
    const { citations } = block;
    const cleaned: Block = {
      ...block,
      text: clean(block.text),
      ...(citations === undefined ? {} : { citations: citations.map(cleanCitation) }),
    };
    return cleanVendor(cleaned);
  };
  const cleanChunk = (chunk: ContentChunk): ContentChunk => {
    if (chunk.type === 'citation') return { ...chunk, citation: cleanCitation(chunk.citation) };
    if (chunk.type === 'block') return { ...chunk, block: cleanBlock(chunk.block) };
    return chunk.type === 'text' ? cleanVendor(chunk) : chunk;
  };
  const cleanFacts = (message: AssistantMessage): AssistantMessage => {
    const vendor = redactValue(message.vendor, clean);
    return isRecord(vendor) ? { ...message, vendor } : message;
  };
  const cleanResult = ({ details, ...result }: ToolResultBlock): ToolResultBlock => ({
    ...result,
    content: result.content.map(cleanBlock),
    ...(details === undefined ? {} : { details: redactValue(details, clean) }),
  });
  /** Strings that a tool emits form one text: a match may span several. */
  const cleanProgress = () => {
    const windows = new Map<string, ReturnType<typeof createTextWindow>>();
    return mergeMap((event: EventOf<'actingChunk'>) => {
      const { toolCall, value } = event;
      if (typeof value !== 'string') return of({ ...event, value: redactValue(value, clean) });
      const known = windows.get(toolCall.id) ?? createTextWindow(releaseReplaced(replaceOptions));
      windows.set(toolCall.id, known);
      const text = known.push(value).map((chunk) => (chunk.type === 'text' ? chunk.text : ''));
      return text.length === 0 ? EMPTY : of({ ...event, value: text.join('') });
    });
  };
  const cleanMessage = (message: Message): Message => {
    if (message.role === 'tool') return { ...message, content: message.content.map(cleanResult) };
    if (message.role === 'user') return { ...message, content: message.content.map(cleanBlock) };
    return cleanFacts({ ...message, content: message.content.map(cleanBlock) });
  };
  const cleanInput = (it: InputMessage): Message => cleanMessage({ id: '', ...it });
  const cleanedMessages = new WeakMap<Message, Message>();
  const cleanOnce = (message: Message): Message => {
    const cleaned = cleanedMessages.get(message) ?? cleanMessage(message);
    cleanedMessages.set(message, cleaned);
    return cleaned;
  };
  const cleanRequest = <Event extends BeforeModel>(event: Event): Event => {
    const { system, ...rest } = event.options;
    const request = system === undefined ? rest : { ...rest, system: clean(system) };
    return { ...event, messages: event.messages.map(cleanOnce), options: request };
  };
  const cleanAnswer = <Event extends AfterModel>(event: Event): Event => ({
    ...event,
    message: cleanFacts({ ...event.message, content: event.message.content.map(cleanBlock) }),
  });
  const cleanActed = (it: EventOf<'postActing'>) => ({ ...it, result: cleanResult(it.result) });
  return [
    prepare(
      map((asked) => ({ ...asked, input: asked.input.map(cleanInput) })),
      placement,
    ),
    on(
      'preCall',
      map((event) => ({ ...event, input: event.input.map(cleanOnce) })),
      placement,
    ),
    on('preReasoning', map(cleanRequest), placement),
    on('preSummary', map(cleanRequest), placement),
    on('prePlanning', map(cleanRequest), placement),
    transformChunks(replaceMatches(replaceOptions, cleanChunk), placement),
    on('postReasoning', map(cleanAnswer), placement),
    on('postSummary', map(cleanAnswer), placement),
    on('postPlanning', map(cleanAnswer), placement),
    onCall('actingChunk', cleanProgress, placement),
    on('postActing', map(cleanActed), placement),
  ];
};

const check = (options: unknown, patterns: readonly RegExp[]): void => {
  const empty = patterns.find((it) => ''.search(it) === 0)?.source;
  if (empty !== undefined)
    throw misuse(`redact(): /${empty}/ matches the empty string. Require a character: + for *.`);
  if (typeof options === 'string' || options instanceof RegExp)
    throw misuse(`redact(): pass patterns as a list, and a replacement as { replacement: 'x' }.`);
  checkOptions('redact()', options, rules);
};

/** Redacts strings in a tool's value. Returns a plain copy if anything changes or cannot be searched. */
const redactValue = (
  value: unknown,
  clean: (text: string) => string,
  ancestors: readonly object[] = [],
): unknown => {
  if (typeof value === 'string' || value instanceof String) return clean(String(value));
  if (typeof value === 'symbol' || typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (ancestors.includes(value) || ancestors.length > maxDepth) return '[nested]';
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = 'buffer' in value ? value : new DataView(value);
    const text = new TextDecoder().decode(new Uint8Array(buffer, byteOffset, byteLength));
    return clean(text) === text ? value : clean(text);
  }
  if (value instanceof Date && isPlain(value, 0)) return value;
  const inside = (part: unknown): unknown => redactValue(part, clean, [...ancestors, value]);
  const isError = value instanceof Error;
  if (!isError && 'toJSON' in value && typeof value.toJSON === 'function') {
    return inside(Reflect.apply(value.toJSON, value, ['']));
  }
  const isList = isIterable(value);
  const keys = isError ? Object.getOwnPropertyNames(value) : Object.keys(value);
  const parts: readonly unknown[] = isList
    ? [...value]
    : keys.flatMap((key): unknown[] => [key, Reflect.get(value, key)]);
  const cleaned = parts.map(inside);
  const isSame = cleaned.every((part, index) => Object.is(part, parts[index]));
  const known = Array.isArray(value) ? value.length + 1 : isList ? 0 : keys.length;
  if (isSame && isPlain(value, known)) return value;
  if (isList) return cleaned;
  const fields = Object.fromEntries(
    keys.map((_, index) => [String(cleaned[2 * index]), cleaned[2 * index + 1]]),
  );
  if (!isError) return fields;
  const error = new Error(clean(value.message), { cause: fields['cause'] });
  // A pattern may match the message but not the stack.
  const { stack } = error.message === value.message ? fields : error;
  return Object.assign(error, fields, { name: clean(value.name), stack });
};

const isIterable = (value: object): value is Iterable<unknown> =>
  Symbol.iterator in value && 'entries' in value;

/** Whether a value has a plain class and exactly `known` own fields without getters. List items are not checked. */
const isPlain = (value: object, known: number): boolean =>
  plainPrototypes.has(Object.getPrototypeOf(value)) &&
  Reflect.ownKeys(value).length === known &&
  (Array.isArray(value) ||
    Object.values(Object.getOwnPropertyDescriptors(value)).every((it) => 'value' in it));

const plainClasses = [Object, Array, Map, Set, Date];
const plainPrototypes = new Set<unknown>([null, ...plainClasses.map((it) => it.prototype)]);

const maxDepth = 100;

const rules: Readonly<Record<keyof RedactOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
  replacement: [
    (value) => typeof value === 'string' || typeof value === 'function',
    'a string, or a function that returns one',
  ],
  window: wholeNumber(1),
};

interface ReplaceOptions {
  readonly patterns: readonly RegExp[];
  readonly window: number;
  readonly replace: (match: string) => string;
}

/** Windows to hold back a match before its replacement is emitted and the rest of it dropped. */
const maxHeld = 4;

/** Replaces matches in a streamed message. Each delta costs a search of the window. Replaces an endless match once. */
export const replaceMatches = (
  replacing: ReplaceOptions,
  other: (chunk: ContentChunk) => ContentChunk = (chunk) => chunk,
) => textWindow(releaseReplaced(replacing), other);

const releaseReplaced =
  ({ patterns, window, replace }: ReplaceOptions) =>
  ({ text, released, from }: HeldText, isLast: boolean): Release => {
    const ranges = findRanges(patterns, text, from).filter(({ end }) => end > released);
    const limit = isLast
      ? text.length
      : Math.max(released, characterStart(text, text.length - window));
    const spanning = ranges.find(({ start, end }) => start < limit && limit < end);
    const isLong =
      spanning !== undefined && spanning.start < Math.max(released, text.length - maxHeld * window);
    const cut = spanning === undefined || isLong ? limit : spanning.start;
    return {
      chunks: textChunk(replaceRanges(text, ranges, replace, { start: released, end: cut })),
      rest: isLong
        ? shortenMatch(holdMatch(text, spanning.start, cut), patterns, window)
        : holdFrom(text, cut),
    };
  };

/** Shortens the buffered part of a long match, keeping only what the pattern needs to still match. */
const shortenMatch = (held: HeldText, patterns: readonly RegExp[], window: number): HeldText => {
  const { text, released, from } = held;
  const excess = released - from - 2 * window;
  if (excess <= (maxHeld - 2) * window) return held;
  const end = endOfMatch(held, patterns);
  for (const removed of Array.from({ length: window + 1 }, (_, index) => excess - index)) {
    const join = from + window;
    const candidate = {
      text: text.slice(0, join) + text.slice(join + removed),
      released: released - removed,
      from,
    };
    if (endOfMatch(candidate, patterns) === end - removed) return candidate;
  }
  return holdFrom(text, released);
};

const endOfMatch = ({ text, from }: HeldText, patterns: readonly RegExp[]): number =>
  findRanges(patterns, text, from).find(({ start }: Range) => start === from)?.end ?? 0;
