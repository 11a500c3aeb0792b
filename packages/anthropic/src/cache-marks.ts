import type { BetaCacheControlEphemeral as CacheControlEphemeral } from '@anthropic-ai/sdk/resources/beta/messages';
import type { CacheMark } from 'millrace';
import { at, type JsonRecord } from '@millrace/wire';

/** The lifetime of a prefix in Anthropic's prompt cache. */
export type CacheTime = '5m' | '1h';

/** The API accepts so many breakpoints in a request. */
const maxMarks = 4;

/** The cache breakpoint for the end of a prefix. */
export const cacheMark = (time: CacheTime): CacheControlEphemeral => ({
  type: 'ephemeral',
  ttl: time,
});

/** The lifetime that a user asks for with a mark on a block. */
export const cacheTime = (mark: CacheMark | undefined): CacheTime | undefined =>
  mark === true ? '5m' : mark;

/** Adds a breakpoint to a serialized block, before its closing brace. */
export const withMark = (json: string, time: CacheTime | undefined): string =>
  time === undefined
    ? json
    : `${json.slice(0, -1)},"cache_control":${JSON.stringify(cacheMark(time))}}`;

/** A serialized tool, with the fields that the user wrote for the vendor. */
export interface WireTool {
  readonly json: string;
  readonly fields: JsonRecord;
}

/** The parts of a request, other than blocks of messages, on which a user may set breakpoints. */
export interface OwnMarks {
  readonly body: JsonRecord;
  readonly tools: readonly JsonRecord[];
}

/** The breakpoints that are left for a request, which the user's own count towards. */
export interface MarkBudget {
  /** Whether the user may set another one on a block of a message, which then counts. */
  readonly takeOwn: (time: CacheTime) => boolean;
  /** The lifetime of another breakpoint of Millrace, which then counts; `undefined` if all are taken. */
  readonly take: () => CacheTime | undefined;
}

/**
 * Counts the breakpoints of a request. Those of Millrace take the lifetime of the user's, because the API rejects a longer
 * one after a shorter one; if the user mixes lifetimes, Millrace adds none.
 */
export const createMarkBudget = (
  { body, tools }: OwnMarks,
  cache: CacheTime | undefined,
): MarkBudget => {
  const marks = tools.map((tool) => tool['cache_control']).filter(isMark);
  const ofBody = body['cache_control'];
  // That of the body is the last one, so only a longer lifetime matters.
  const times = new Set<CacheTime>([
    ...marks.map(timeOf),
    ...(isMark(ofBody) && timeOf(ofBody) === '1h' ? ['1h' as const] : []),
  ]);
  let left = maxMarks - marks.length - (isMark(ofBody) ? 1 : 0);
  return {
    takeOwn: (time) => {
      if (left <= 0) return false;
      left -= 1;
      times.add(time);
      return true;
    },
    take: () => {
      if (cache === undefined || left <= 0 || times.size > 1) return undefined;
      left -= 1;
      return [...times][0] ?? cache;
    },
  };
};

const isMark = (mark: unknown): boolean => mark !== undefined && mark !== null;

export const timeOf = (mark: unknown): CacheTime => (at(mark, 'ttl') === '1h' ? '1h' : '5m');

/** Adds a breakpoint to the last of some serialized blocks. */
export const withLastMarked = (
  blocks: readonly string[],
  budget: MarkBudget,
): readonly string[] => {
  const last = blocks.at(-1);
  return last === undefined ? blocks : blocks.with(-1, withMark(last, budget.take()));
};

/** Adds a breakpoint to the last tool that may have one: the API rejects it on a tool that is loaded later. */
export const withToolsMarked = (
  tools: readonly WireTool[],
  budget: MarkBudget,
): readonly string[] => {
  const end = tools.findLastIndex(({ fields }) => fields['defer_loading'] !== true);
  const isMarked = isMark(tools[end]?.fields['cache_control']);
  const mark = end === -1 || isMarked ? undefined : budget.take();
  return tools.map(({ json }, index) => (index === end ? withMark(json, mark) : json));
};
