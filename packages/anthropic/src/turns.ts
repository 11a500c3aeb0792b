import type {
  BetaAssistantMessageParam as AssistantMessageParam,
  BetaContentBlockParam as ContentBlockParam,
  BetaUserMessageParam as UserMessageParam,
} from '@anthropic-ai/sdk/resources/beta/messages';
import type { Message } from 'millrace';
import { toExactJson } from 'millrace/values';
import { at } from '@millrace/wire';
import { type CacheTime, type MarkBudget, timeOf, withMark } from './cache-marks.js';

export interface Part {
  readonly type: ContentBlockParam['type'];
  readonly json: string;
  /** The lifetime of a cache breakpoint. */
  readonly mark?: CacheTime;
}

/** Consecutive blocks of one role, serialized. */
export interface Turn {
  readonly role: (UserMessageParam | AssistantMessageParam)['role'];
  readonly content: readonly Part[];
}

/** Serializes a block, and keeps the user's breakpoint on it apart: a request may have too many. */
export const toPart = (block: ContentBlockParam): Part => {
  const { type } = block;
  const mark = at(block, 'cache_control');
  return mark === undefined
    ? { type, json: toExactJson(block) }
    : { type, json: toExactJson({ ...block, cache_control: undefined }), mark: timeOf(mark) };
};

/** Serializes a turn as one message. */
export const turnText = ({ role, content }: Turn): string => {
  let blocks = '';
  for (const { json, mark } of content) {
    const block = withMark(json, mark);
    blocks += blocks === '' ? block : `,${block}`;
  }
  return `{"role":"${role}","content":[${blocks}]}`;
};

export const marksIn = (turns: readonly Turn[]): readonly CacheTime[] =>
  turns.flatMap(({ content }) => content.flatMap(({ mark }) => mark ?? []));

export const withoutMarks = (turns: readonly Turn[]): readonly Turn[] =>
  turns.map(({ role, content }) => ({
    role,
    content: content.map(({ type, json }) => ({ type, json })),
  }));

/** Keeps the user's breakpoints in turns while the budget lasts, the newest first. */
export const withOwnMarks = (turns: readonly Turn[], budget: MarkBudget): readonly Turn[] => {
  if (marksIn(turns).length === 0) return turns;
  const keep = ({ type, json, mark }: Part): Part =>
    mark !== undefined && budget.takeOwn(mark) ? { type, json, mark } : { type, json };
  return turns
    .toReversed()
    .map(({ role, content }) => ({ role, content: content.toReversed().map(keep).toReversed() }))
    .toReversed();
};

/**
 * Adds breakpoints to the last two user turns: the cache of the previous request ends at the first of them, and the
 * next request continues from the second. The API only looks back 20 blocks for a cached prefix.
 */
export const withEndMarks = (turns: readonly Turn[], budget: MarkBudget): readonly Turn[] => {
  const last = turns.length - 1;
  const before = turns.findLastIndex(({ role }, index) => role === 'user' && index < last);
  const marked = [...turns];
  for (const index of [last, before]) {
    const turn = turns[index];
    if (turn !== undefined) marked[index] = withEndMarked(turn, budget);
  }
  return marked;
};

const withEndMarked = ({ role, content }: Turn, budget: MarkBudget): Turn => {
  const end = content.findLastIndex(({ type }) => markable.has(type));
  const part = content[end];
  const mark = part === undefined || part.mark !== undefined ? undefined : budget.take();
  if (part === undefined || mark === undefined) return { role, content };
  return { role, content: content.with(end, { ...part, mark }) };
};

const markable: ReadonlySet<ContentBlockParam['type']> = new Set([
  'text',
  'image',
  'document',
  'tool_use',
  'tool_result',
]);

/** Merges consecutive messages of one role. It drops empty messages, but keeps an empty user turn. */
export const inTurns = (
  messages: readonly Message[],
  partsOf: (message: Message) => readonly Part[],
): readonly Turn[] => {
  const turns: Turn[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const content = partsOf(message);
    const last = turns.at(-1);
    if (last?.role === role) {
      turns[turns.length - 1] = { role, content: [...last.content, ...content] };
    } else if (content.length > 0) turns.push({ role, content });
    else if (role === 'user') turns.push({ role, content: [blank] });
  }
  return turns;
};

/** Stands for a blank user message: without it, the model would continue its last message. */
const blank = toPart({ type: 'text', text: '(empty)' });
