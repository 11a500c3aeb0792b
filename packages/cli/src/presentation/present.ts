import { type AgentEvent, type EventOf, isEvent, type Reply, textOf } from '@millrace/core';
import { defer, filter, map, type OperatorFunction, scan, tap } from 'rxjs';
import { describeEvent } from './describe-event.js';
import { describeReply, type UsageUnit } from './describe-reply.js';
import { marblePicture } from '../marbles/marble-picture.js';
import { printable } from './printable.js';
import { plainTheme, type Theme } from './theme.js';

/** How a call is presented. */
export interface PresentOptions {
  /** Default: no colour, 72 columns wide. */
  readonly theme?: Theme;
  /** What the usage is counted in. Default: tokens. */
  readonly unit?: UsageUnit;
}

/**
 * Turns the events of one call into text for a terminal as they come: thinking, tools, the answer, what it took,
 * and a marble picture of it all. Joined, the texts are the whole output, each block of it in lines of its own.
 */
export const present =
  (options: PresentOptions = {}): OperatorFunction<AgentEvent, string> =>
  (event$) =>
    defer(() => {
      const events: AgentEvent[] = [];
      const book = { theme: plainTheme, unit: 'tokens', ...options, events } as const;
      return event$.pipe(
        tap((event) => events.push(event)),
        scan((page, event) => print({ ...page, text: '' }, event, book), blank),
        map(({ text }) => text),
        filter((text) => text !== ''),
      );
    });

/** What a page is printed with: the options, and the events so far. */
interface Book extends Required<PresentOptions> {
  readonly events: readonly AgentEvent[];
}

const print = (page: Page, event: AgentEvent, book: Book): Page => {
  const { theme, unit } = book;
  const isOwn = event.parentId === undefined;
  if (isEvent(event, 'reasoningChunk', 'summaryChunk', 'planningChunk'))
    return flow(page, event, theme);
  if (isOwn && event.type === 'postCall') {
    // Not all the time since it began: it may have lain for days, or be a fork.
    const elapsedMs = event.at - (book.events[0]?.at ?? event.at);
    const summary = describeReply({ ...event.reply, elapsedMs }, unit, theme);
    return picture(lines(answer(page, event.reply), ['', summary]), book);
  }
  const told = lines(page, indented(event, theme));
  return isOwn && event.type === 'error' ? picture(told, book) : told;
};

/** What has been printed. */
interface Page {
  /** What this event added. */
  readonly text: string;
  /** Which stream of deltas holds the line that has been begun; undefined at the start of a line. */
  readonly flowing: string | undefined;
  /** The model's last message, as far as it was shown. */
  readonly messageId: string;
  readonly shown: string;
}

const blank: Page = { text: '', flowing: undefined, messageId: '', shown: '' };

/** Prints whole lines, on lines of their own. */
const lines = (page: Page, added: readonly string[]): Page =>
  added.length === 0
    ? page
    : {
        ...page,
        text: `${page.text}${page.flowing === undefined ? '' : '\n'}${added.join('\n')}\n`,
        flowing: undefined,
      };

const indented = (event: AgentEvent, theme: Theme): readonly string[] => {
  const indent = indentOf(event);
  return describeEvent(event, theme, theme.width - indent.length).map((line) => indent + line);
};

const indentOf = ({ agent }: AgentEvent): string => '  '.repeat(agent.length);

type Chunk = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

/** Prints a delta. The answer stands out: it begins in the first column. */
const flow = (page: Page, chunk: Chunk, { colors }: Theme): Page => {
  const { kind, messageId, callId, delta } = chunk;
  if (kind === 'toolInput') return page;
  const key = `${callId} ${messageId} ${kind}`;
  if (isAnswer(chunk)) {
    const shown = shownBefore(page, messageId) + delta;
    return write({ ...page, messageId, shown }, key, '\n', printable(delta));
  }
  const indent = indentOf(chunk);
  const aside = printable(delta).replaceAll('\n', `\n${indent}`);
  return write(page, key, indent + speaker(chunk), aside, colors.dim);
};

/** Goes on with the line of a flow, or opens it. */
const write = (
  page: Page,
  flowing: string,
  opening: string,
  delta: string,
  paint: (text: string) => string = String,
): Page => {
  const isNew = page.flowing !== flowing;
  const text = isNew ? delta.trimStart() : delta;
  if (text === '') return page;
  const before = isNew && page.flowing !== undefined ? '\n' : '';
  return { ...page, text: page.text + before + paint(isNew ? opening + text : text), flowing };
};

const shownBefore = (page: Page, messageId: string): string =>
  page.messageId === messageId ? page.shown : '';

/** Text of the call's own agent, or of one below that speaks for it. */
const isAnswer = ({ type, kind, parentId, speaks }: Chunk): boolean =>
  type !== 'planningChunk' && kind === 'text' && (parentId === undefined || speaks === true);

const speaker = (chunk: Chunk): string =>
  chunk.kind === 'text' && chunk.parentId !== undefined && !isAnswer(chunk)
    ? `${chunk.agent.at(-1) ?? ''}: `
    : '';

/** Prints the text of a reply that was not streamed, or was changed since. */
const answer = (page: Page, reply: Reply): Page => {
  const text = textOf(reply);
  return text === '' || text === shownBefore(page, reply.id)
    ? page
    : lines(page, ['', printable(text)]);
};

const picture = (page: Page, { events, theme }: Book): Page => {
  const drawn = marblePicture(events, theme);
  return drawn === '' ? page : lines(page, ['', drawn]);
};
