import { EMPTY, map, mergeMap, of } from 'rxjs';
import type { Interceptor, InterceptorOptions } from '../../seams/interceptor.js';
import { on, onCall, prepare, transformChunks } from '../../seams/interceptor.js';
import type { AfterModel, BeforeModel, EventOf } from '../../events.js';
import type {
  AssistantBlock,
  ContentBlock,
  Message,
  ToolResultBlock,
} from '../../values/message.js';
import type { Rule } from '../../values/options.js';
import { checkOptions, isFlag, isNumber, isText, wholeNumber } from '../../values/options.js';
import { findRanges, type Patterns, readPatterns, replaced, type Range } from './patterns.js';
import { characterStart } from '../../values/surrogates.js';
import type { HeldText, Release } from './guard-output.js';
import { createTextWindow, heldFrom, heldWithin, textChunk, textWindow } from './guard-output.js';

/** How text is redacted. */
export interface RedactOptions extends InterceptorOptions {
  /** The replacement of a match, or a function that returns it. Default: `[redacted]`. */
  readonly replacement?: string | ((match: string) => string);
  /** Characters held back to see matches in pieces. They are missing from interrupted replies and `partial` texts. Default: 128. */
  readonly window?: number;
}

/**
 * Removes matches from a call: from its input and steered messages, from everything the model is sent (history and system prompt included), from tool results, their `details` and progress, and from what the model writes, while it streams. Errors and other objects
 * in progress and details are passed on as the plain data that was searched; the last characters of progress are held back. Not covered: `preCall` (the input as it came), thinking (signed by the provider), tool arguments. Empty matches are ignored.
 *
 * A match longer than the window is removed while it streams if its beginning, within the window, already matches and each further character extends it, as in `/sk-[a-z]+/`. Any other may be shown in part; it is not stored, unless a part of it matches by itself: `/key(-[a-z]{600})?/` removes `key` and leaves what follows.
 */
export const redact = (secrets: Patterns, options: RedactOptions = {}): readonly Interceptor[] => {
  checkOptions('redact()', options, rules);
  const { replacement = '[redacted]', window = 128, name = 'redact', ...others } = options;
  const placed = { ...others, name };
  const patterns = readPatterns('redact()', secrets);
  const replace = typeof replacement === 'function' ? replacement : () => replacement;
  const replacing = { patterns, window, replace };
  const clean = (text: string): string => {
    const ranges = findRanges(patterns, text);
    return ranges.length === 0 ? text : replaced(text, ranges, replace);
  };
  const cleanBlock = <Block extends ContentBlock | AssistantBlock>(block: Block): Block =>
    block.type === 'text' ? { ...block, text: clean(block.text) } : block;
  const cleanResult = ({ details, ...result }: ToolResultBlock): ToolResultBlock => ({
    ...result,
    content: result.content.map(cleanBlock),
    ...(details === undefined ? {} : { details: cleanedIn(details, clean) }),
  });
  /** The strings that a tool emits are one text, so a match may come in pieces. */
  const cleanProgress = () => {
    const windows = new Map<string, ReturnType<typeof createTextWindow>>();
    return mergeMap((event: EventOf<'actingChunk'>) => {
      const { toolUse, value } = event;
      if (typeof value !== 'string') return of({ ...event, value: cleanedIn(value, clean) });
      const known = windows.get(toolUse.id) ?? createTextWindow(released(replacing));
      windows.set(toolUse.id, known);
      const text = known.push(value).map((chunk) => (chunk.type === 'text' ? chunk.text : ''));
      return text.length === 0 ? EMPTY : of({ ...event, value: text.join('') });
    });
  };
  const cleanMessage = (message: Message): Message => {
    switch (message.role) {
      case 'user':
        return { ...message, content: message.content.map(cleanBlock) };
      case 'assistant':
        return { ...message, content: message.content.map(cleanBlock) };
      case 'tool':
        return { ...message, content: message.content.map(cleanResult) };
    }
  };
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
    message: { ...event.message, content: event.message.content.map(cleanBlock) },
  });
  return [
    prepare(
      map((asked) => ({
        ...asked,
        input: asked.input.map((it) => cleanMessage({ id: '', ...it })),
      })),
      placed,
    ),
    on('preReasoning', map(cleanRequest), placed),
    on('preSummary', map(cleanRequest), placed),
    on('prePlanning', map(cleanRequest), placed),
    transformChunks(replaceMatches(replacing), placed),
    on('postReasoning', map(cleanAnswer), placed),
    on('postSummary', map(cleanAnswer), placed),
    on('postPlanning', map(cleanAnswer), placed),
    onCall('actingChunk', cleanProgress, placed),
    on(
      'postActing',
      map((event) => ({ ...event, result: cleanResult(event.result) })),
      placed,
    ),
  ];
};

/** A value of a tool's with its strings cleaned: the value itself if nothing changes and nothing in it could not be searched, else a copy made of plain objects, lists and errors, of what JSON would make of it. */
const cleanedIn = (
  value: unknown,
  clean: (text: string) => string,
  above: readonly object[] = [],
): unknown => {
  if (typeof value === 'string' || value instanceof String) return clean(String(value));
  if (typeof value === 'symbol' || typeof value === 'function') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value) || above.length > maxDepth) return '[nested]';
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) {
    const { buffer, byteOffset, byteLength } = 'buffer' in value ? value : new DataView(value);
    const text = new TextDecoder().decode(new Uint8Array(buffer, byteOffset, byteLength));
    return clean(text) === text ? value : clean(text);
  }
  if (value instanceof Date && isOpen(value, 0)) return value;
  const inside = (part: unknown): unknown => cleanedIn(part, clean, [...above, value]);
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
  if (isSame && isOpen(value, known)) return value;
  if (isList) return cleaned;
  const fields = Object.fromEntries(
    keys.map((_, index) => [String(cleaned[2 * index]), cleaned[2 * index + 1]]),
  );
  if (!isError) return fields;
  const error = new Error(clean(value.message), { cause: fields['cause'] });
  // A pattern may find the message and not find it within the stack.
  const { stack } = error.message === value.message ? fields : error;
  return Object.assign(error, fields, { name: clean(value.name), stack });
};

/** A map, a set, or what is read like one, such as the headers of a request. */
const isIterable = (value: object): value is Iterable<unknown> =>
  Symbol.iterator in value && 'entries' in value;

/** Tells whether a value is of a form that hides nothing, and has so many fields of its own, none of which is a getter. The items of a list are not checked for that. */
const isOpen = (value: object, known: number): boolean =>
  openForms.has(Object.getPrototypeOf(value)) &&
  Reflect.ownKeys(value).length === known &&
  (Array.isArray(value) ||
    Object.values(Object.getOwnPropertyDescriptors(value)).every((it) => 'value' in it));

const openClasses = [Object, Array, Map, Set, Date];
const openForms = new Set<unknown>([null, ...openClasses.map((it) => it.prototype)]);

const maxDepth = 100;

const rules: Readonly<Record<keyof RedactOptions, Rule>> = {
  name: isText,
  priority: isNumber,
  failOpen: isFlag,
  replacement: [
    (value) => typeof value === 'string' || typeof value === 'function',
    'a text, or a function that gives one',
  ],
  window: wholeNumber(1),
};

interface Replacing {
  readonly patterns: readonly RegExp[];
  /** How many characters are held back, so that a match which comes in pieces is seen whole. */
  readonly window: number;
  readonly replace: (match: string) => string;
}

/** How many windows a match is held back for, before what stands for it is shown and the rest of it only dropped. */
const patience = 4;

/** Replaces matches in a streamed message. Each delta costs a search of the window. An endless match is replaced once and dropped. */
export const replaceMatches = (replacing: Replacing) => textWindow(released(replacing));

const released =
  ({ patterns, window, replace }: Replacing) =>
  ({ text, passed, from }: HeldText, isLast: boolean): Release => {
    const ranges = findRanges(patterns, text, from).filter(({ end }) => end > passed);
    const due = isLast ? text.length : Math.max(passed, characterStart(text, text.length - window));
    const across = ranges.find(({ start, end }) => start < due && due < end);
    const isLong =
      across !== undefined && across.start < Math.max(passed, text.length - patience * window);
    const cut = across === undefined || isLong ? due : across.start;
    return {
      chunks: textChunk(replaced(text, ranges, replace, { start: passed, end: cut })),
      rest: isLong
        ? remembered(heldWithin(text, across.start, cut), patterns, window)
        : heldFrom(text, cut),
    };
  };

/** Keeps the memory of a long match short, by leaving out turns of its loop without which the pattern still matches. */
const remembered = (held: HeldText, patterns: readonly RegExp[], window: number): HeldText => {
  const { text, passed, from } = held;
  const most = passed - from - 2 * window;
  if (most <= (patience - 2) * window) return held;
  const end = reach(held, patterns);
  const shorter = Array.from({ length: window + 1 }, (_, index) => most - index);
  for (const left of shorter) {
    const join = from + window;
    const tried = {
      text: text.slice(0, join) + text.slice(join + left),
      passed: passed - left,
      from,
    };
    if (reach(tried, patterns) === end - left) return tried;
  }
  return heldFrom(text, passed);
};

const reach = ({ text, from }: HeldText, patterns: readonly RegExp[]): number =>
  findRanges(patterns, text, from).find(({ start }: Range) => start === from)?.end ?? 0;
