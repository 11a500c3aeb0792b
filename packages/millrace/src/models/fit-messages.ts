import { catchError, concat, defer, EMPTY, tap } from 'rxjs';
import { isMillraceError, misuse } from '../values/errors.js';
import type { Message, ToolMessage, ToolResultBlock } from '../values/message.js';
import { freezeMessage, isBesideQuestion, textBlock } from '../values/message.js';
import { costOf, factorFor, plainCounter, type TokenCounter, weigh } from './count-request.js';
import { characterEnd, characterStart } from '../values/surrogates.js';
import type { Model, ModelContext } from './model.js';
import { taskOf } from './prompt.js';
import { aroundModel } from './around-model.js';
import { checkModel } from './timeouts.js';

export interface Fitted {
  readonly messages: readonly Message[];
  readonly omitted: number;
  /** Their tokens, counted without a factor: deterministic. */
  readonly omittedTokens: number;
  /** The number of recent tool results that were truncated in the middle. */
  readonly cut: number;
  /** By how many tokens the required messages exceed the budget; 0 if they fit. */
  readonly over: number;
}

export interface FitOptions {
  /** Default: `estimateTokens` with a rule for JSON, code, digits, CJK and emoji. */
  readonly counter?: TokenCounter | undefined;
  /** The model name for the counter's `factor`. */
  readonly model?: string | undefined;
  /** Rounds omitted tokens up to a multiple of this, so the prefix stays the same for caches. Default: 0. */
  readonly step?: number | undefined;
}

/**
 * Omits messages that exceed a budget of tokens: first the oldest history before the task, then the oldest tool calls after it, except the
 * newest, whose results are truncated in the middle if they are still too long. A tool call and its result stay together, and the task
 * stays, with a marker that counts the omitted messages. So do other messages after the task, such as feedback. With a budget of 0 only the task stays. Messages
 * that fit are returned unchanged.
 */
export const fitMessages = (
  messages: readonly Message[],
  budget: number,
  isTask: (message: Message) => boolean,
  { counter = plainCounter, model, step = 0 }: FitOptions = {},
): Fitted => {
  if (Number.isNaN(budget)) throw misuse('fitMessages() needs a token budget.');
  const scale: Scale = { counter, factor: factorFor(counter, model) };
  const total = costOfAll(messages, scale);
  const task = messages.findIndex(isTask);
  if (total <= budget) return { ...untouched(messages), over: 0 };
  if (task === -1) return { ...untouched(messages), over: total - budget };
  const spared = marker(messages.length, tokensOf(messages, counter));
  const missing = total - budget + costOf({ text: counter.count(spared), media: 0 }, scale.factor);
  const removable =
    budget > 0
      ? removableUnits(messages, task, isTask)
      : messages.filter((message) => !isTask(message)).map((message) => [message]);
  const wanted = budget > 0 && step > 0 ? Math.ceil(missing / step) * step : missing;
  const omitted = firstOf(removable, budget > 0 ? wanted : Infinity, scale);
  return cutNewest(without(messages, omitted, isTask, counter), budget, isTask, scale);
};

interface Scale {
  readonly counter: TokenCounter;
  readonly factor: number;
}

type Unit = readonly Message[];

const untouched = (messages: readonly Message[]) => ({
  messages,
  omitted: 0,
  omittedTokens: 0,
  cut: 0,
});

const costOfAll = (messages: readonly Message[], { counter, factor }: Scale): number =>
  messages.reduce((sum, message) => sum + costOf(weigh(counter, message), factor), 0);

const tokensOf = (messages: readonly Message[], counter: TokenCounter): number =>
  costOfAll(messages, { counter, factor: 1 });

/** Messages that may be omitted, in this order: the history by user turns, then what others have said since the task and all but the newest tool calls. */
const removableUnits = (
  messages: readonly Message[],
  task: number,
  isTask: (message: Message) => boolean,
): readonly Unit[] => {
  const turns: Message[][] = [];
  for (const message of messages.slice(0, task)) {
    const turn = turns.at(-1);
    if (turn === undefined || message.role === 'user') turns.push([message]);
    else turn.push(message);
  }
  const since = messages.flatMap((message, index): readonly Unit[] => {
    const asked = messages[index - 1];
    if (index < task || isTask(message)) return [];
    if (message.role === 'user') return isBesideQuestion(message) ? [[message]] : [];
    const isPair = message.role === 'tool' && asked?.role === 'assistant' && !isTask(asked);
    return isPair ? [[asked, message]] : [];
  });
  const newest = since.findLast(([, results]) => results !== undefined);
  return [...turns, ...since.filter((unit) => unit !== newest)];
};

const firstOf = (units: readonly Unit[], tokens: number, scale: Scale): ReadonlySet<Message> => {
  const taken = new Set<Message>();
  let left = tokens;
  for (const unit of units) {
    if (left <= 0) break;
    unit.forEach((message) => taken.add(message));
    left -= costOfAll(unit, scale);
  }
  return taken;
};

/** The original of a message with a marker, and the count in the marker, which grows when more is omitted. */
interface Marked {
  readonly plain: Message;
  readonly omitted: number;
  readonly omittedTokens: number;
}

const markers = new WeakMap<Message, Marked>();

const without = (
  messages: readonly Message[],
  omitted: ReadonlySet<Message>,
  isTask: (message: Message) => boolean,
  counter: TokenCounter,
): Omit<Fitted, 'cut' | 'over'> => {
  if (omitted.size === 0) return untouched(messages);
  const omittedTokens = tokensOf([...omitted], counter);
  const place = messages.find((message) => isTask(message) && message.role !== 'tool');
  const kept = messages.filter((message) => !omitted.has(message));
  return {
    messages: kept.map((message) =>
      message === place ? marked(message, omitted.size, omittedTokens) : message,
    ),
    omitted: omitted.size,
    omittedTokens,
  };
};

const marked = (message: Message, more: number, moreTokens: number): Message => {
  const before = markers.get(message) ?? { plain: message, omitted: 0, omittedTokens: 0 };
  const { plain } = before;
  if (plain.role === 'tool') return plain;
  const omitted = before.omitted + more;
  const omittedTokens = before.omittedTokens + moreTokens;
  const first = textBlock(marker(omitted, omittedTokens));
  const made: Message =
    plain.role === 'user'
      ? { ...plain, content: [first, ...plain.content] }
      : { ...plain, content: [first, ...plain.content] };
  const kept = asFrozenAs(plain, made);
  markers.set(kept, { plain, omitted, omittedTokens });
  return kept;
};

const asFrozenAs = (plain: Message, made: Message): Message =>
  Object.isFrozen(plain) ? freezeMessage(made) : made;

export const marker = (omitted: number, tokens: number): string =>
  `[${omitted} earlier messages, about ${tokens} tokens, are left out here.]\n\n`;

/** Truncates the newest results: the model waits for them, and a part is better than nothing. */
const cutNewest = (
  fitted: Omit<Fitted, 'cut' | 'over'>,
  budget: number,
  isTask: (message: Message) => boolean,
  { counter, factor }: Scale,
): Fitted => {
  const { messages } = fitted;
  const over = costOfAll(messages, { counter, factor }) - budget;
  const newest = messages.findLast((it) => it.role === 'tool' && !isTask(it));
  if (over <= 0 || newest?.role !== 'tool') return { ...fitted, cut: 0, over: Math.max(0, over) };
  const room = costOf(weigh(counter, newest), factor) - over;
  const cut = cutResults(newest, room, counter, factor);
  const shorter = asFrozenAs(newest, cut);

  const cost = costOf(weigh(counter, shorter), factor);
  return {
    ...fitted,
    messages: messages.map((message) => (message === newest ? shorter : message)),
    cut: cut.content.filter((result, index) => result !== newest.content[index]).length,
    over: Math.max(0, cost - room),
  };
};

const leastTokens = 64;

/** Truncates the longest texts of tool results in the middle, to a common length at which the message fits. */
const cutResults = (
  message: ToolMessage,
  budget: number,
  counter: TokenCounter,
  factor: number,
): ToolMessage => {
  const { text, media } = weigh(counter, message);
  if (costOf({ text, media }, factor) <= budget) return message;
  const counts = message.content.flatMap((result) =>
    result.content.map((block) => (block.type === 'text' ? counter.count(block.text) : 0)),
  );
  const texts = sum(counts);
  const room = Math.floor((budget - media) / factor) - (text - texts);
  const most = Math.max(leastTokens, levelOf(counts, room));
  if (counts.every((count) => count <= most)) return message;
  const count = (it: string): number => counter.count(it);
  const cut = (result: ToolResultBlock): ToolResultBlock => {
    const content = result.content.map((block) => {
      if (block.type !== 'text') return block;
      const tokens = count(block.text);
      return tokens <= most ? block : textBlock(cutMiddle(block.text, tokens, most, count));
    });
    return content.some((block, index) => block !== result.content[index])
      ? { ...result, content }
      : result;
  };
  return { ...message, content: message.content.map(cut) };
};

/** The most that each of some counts can have for all to have this room together: short ones leave theirs to the others. */
export const levelOf = (counts: readonly number[], room: number): number => {
  let left = room;
  const ascending = [...counts].sort((a, b) => a - b);
  for (const [index, count] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (count > share) return Math.floor(share);
    left -= count;
  }
  return Infinity;
};

const sum = (counts: readonly number[]): number => counts.reduce((a, b) => a + b, 0);

/** Omits the middle of the text until its count is low enough, with a marker. */
const cutMiddle = (
  text: string,
  tokens: number,
  most: number,
  count: (text: string) => number,
): string => {
  const room = Math.max(0, most - count(withoutMiddle(text, 0)));
  let kept = Math.floor((text.length * room) / tokens);
  let cut = withoutMiddle(text, kept);
  // The rest may have more tokens per character than the whole.
  while (kept > 0 && count(cut) > most) {
    kept = Math.floor(kept * 0.9);
    cut = withoutMiddle(text, kept);
  }
  return cut;
};

const withoutMiddle = (text: string, kept: number): string => {
  const head = characterStart(text, Math.ceil(kept / 2));
  const tail = characterEnd(text, text.length - Math.floor(kept / 2));
  return `${text.slice(0, head)}\n[… ${tail - head} of ${text.length} characters omitted here …]\n${text.slice(tail)}`;
};

/**
 * If the provider rejects a request as too long before any content, sends it again with half of its messages. Drops the
 * oldest first, never the task, and reports a `warning`. Errors with `contextTooLong` if that fails too or nothing can
 * be dropped. The providers' models do this by default.
 */
export const shortenOnOverflow = (model: Model): Model => {
  checkModel('shortenOnOverflow()', model);
  return aroundModel(model, (request, context) =>
    defer(() => {
      let hasContent = false;
      return model.stream$(request, context).pipe(
        tap(({ type }) => (hasContent ||= type !== 'usage' && type !== 'restart')),
        catchError((error: unknown) => {
          if (!isMillraceError(error) || error.code !== 'contextTooLong' || hasContent) throw error;
          const shorter = shorten(model.name, request.messages, context);
          if (shorter === undefined) throw error;
          const { messages, warning: message } = shorter;
          // A listener may unsubscribe on the warning: then nothing is sent.
          const warned$ = defer(() => {
            context.report({ type: 'warning', message });
            context.shortened?.(messages);
            return EMPTY;
          });
          return concat(warned$, model.stream$({ ...request, messages }, context));
        }),
      );
    }),
  );
};

/** Cuts messages to half their size, except the task; undefined if nothing can be dropped or an answer has begun. */
const shorten = (
  name: string,
  messages: readonly Message[],
  { callId = '' }: Pick<ModelContext, 'callId'>,
): { readonly messages: readonly Message[]; readonly warning: string } | undefined => {
  if (messages.at(-1)?.role === 'assistant') return undefined;
  const half = tokensOf(messages, plainCounter) / 2;
  const fitted = fitMessages(messages, half, taskOf(messages, callId));
  if (fitted.omitted + fitted.cut === 0) return undefined;
  const also = fitted.cut === 0 ? '' : `, and with ${fitted.cut} tool results cut`;
  const warning = `The model '${name}' rejected the request as too long. Sending it again without ${fitted.omitted} earlier messages (about ${fitted.omittedTokens} tokens)${also}.`;
  return { messages: fitted.messages, warning };
};
