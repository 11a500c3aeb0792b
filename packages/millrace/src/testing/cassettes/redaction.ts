import type { Recording } from './file.js';
import {
  findRanges,
  type Patterns,
  readPatterns,
  replaceRanges,
} from '../../layers/interceptors/patterns.js';
import { isRecord } from '../../values/json.js';
import { secretForms } from '../../values/secret-forms.js';
import type { ModelChunk } from '../../models/model.js';

const replacement = '[redacted]';

/** Replaces matches in a string. */
export type Clean = (text: string) => string;

/** Removes secrets from a recording before it is written. */
export interface Redaction {
  readonly clean: Clean;
  /** Also removes secrets that are split into several deltas. */
  readonly cleanEvents: (events: Recording['events']) => Recording['events'];
}

export const createRedaction = (more: Patterns | undefined): Redaction => {
  const own = more === undefined ? [] : readPatterns('cassette()', withEscaped(more));
  const patterns = [...secretForms, ...own];
  return {
    clean: replacing(patterns, replacement),
    cleanEvents: (events) => cleanDeltas(events, patterns),
  };
};

export const replacing =
  (patterns: readonly RegExp[], instead: string): Clean =>
  (text) => {
    const ranges = findRanges(patterns, text);
    return ranges.length === 0 ? text : replaceRanges(text, ranges, () => instead);
  };

/** A word may be a part of JSON that the model streams. */
const withEscaped = (patterns: Patterns): readonly (string | RegExp)[] =>
  [patterns]
    .flat()
    .flatMap((it) =>
      typeof it === 'string' && it !== '' ? [it, JSON.stringify(it).slice(1, -1)] : [it],
    );

/** Replaces strings and keys in plain JSON. */
export const cleanJson = (value: unknown, clean: Clean): unknown => {
  if (typeof value === 'string') return clean(value);
  if (Array.isArray(value)) return value.map((item) => cleanJson(item, clean));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [clean(key), cleanJson(item, clean)]),
  );
};

interface Delta {
  /** Deltas of one channel form one text. */
  readonly channel: string;
  readonly text: string;
  readonly with: (text: string) => ModelChunk;
}

const deltaOf = (chunk: ModelChunk): Delta | undefined => {
  switch (chunk.type) {
    case 'text':
    case 'thinking':
      return { channel: chunk.type, text: chunk.text, with: (text) => ({ ...chunk, text }) };
    case 'toolCall':
      return chunk.json === undefined
        ? undefined
        : {
            channel: `json ${chunk.index ?? chunk.id ?? ''}`,
            text: chunk.json,
            with: (json) => ({ ...chunk, json }),
          };
    default:
      return undefined;
  }
};

const cleanDeltas = (
  events: Recording['events'],
  patterns: readonly RegExp[],
): Recording['events'] => {
  const parts = new Map<string, string[]>();
  for (const event of events) {
    const delta = 'chunk' in event ? deltaOf(event.chunk) : undefined;
    if (delta === undefined) continue;
    const known = parts.get(delta.channel);
    if (known === undefined) parts.set(delta.channel, [delta.text]);
    else known.push(delta.text);
  }
  const channels = new Map(
    [...parts].map(([channel, deltas]) => {
      const text = deltas.join('');
      return [channel, { text, ranges: findRanges(patterns, text), start: 0 }];
    }),
  );
  return events.map((event) => {
    const delta = 'chunk' in event ? deltaOf(event.chunk) : undefined;
    const channel = delta && channels.get(delta.channel);
    if (delta === undefined || channel === undefined || channel.ranges.length === 0) return event;
    const { text, ranges, start } = channel;
    const end = start + delta.text.length;
    channel.start = end;
    const left = ranges.filter((range) => range.end > start);
    return {
      ms: event.ms,
      chunk: delta.with(replaceRanges(text, left, () => replacement, { start, end })),
    };
  });
};
