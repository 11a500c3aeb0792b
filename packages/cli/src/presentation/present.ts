import { type AgentEvent, type EventOf, isEvent, type Reply, textOf } from 'millrace';
import { defer, filter, map, type OperatorFunction, scan, tap } from 'rxjs';
import { describeEvent } from './describe-event.js';
import { describeReply, type UsageUnit } from './describe-reply.js';
import { marblePicture } from '../marbles/marble-picture.js';
import { printable, printableName } from './printable.js';
import { plainTheme, type Theme } from './theme.js';

/** Options of `present`. */
export interface PresentOptions {
  /** Default: no colour, 72 columns. */
  readonly theme?: Theme;
  /** The unit of the usage. Default: tokens. */
  readonly unit?: UsageUnit;
}

/**
 * Renders the events of one call as text for a terminal while they arrive: thinking, tool calls, the answer, a summary
 * and a marble diagram. The emitted strings concatenate to the whole output.
 */
export const present =
  (options: PresentOptions = {}): OperatorFunction<AgentEvent, string> =>
  (event$) =>
    defer(() => {
      const events: AgentEvent[] = [];
      const context = { theme: plainTheme, unit: 'tokens', ...options, events } as const;
      return event$.pipe(
        tap((event) => events.push(event)),
        scan((state, event) => print({ ...state, text: '' }, event, context), blank),
        map(({ text }) => text),
        filter((text) => text !== ''),
      );
    });

/** The options, and the events so far. */
interface PrintContext extends Required<PresentOptions> {
  readonly events: readonly AgentEvent[];
}

const print = (state: PrintState, event: AgentEvent, context: PrintContext): PrintState => {
  const { theme, unit } = context;
  const isOwn = event.parentId === undefined;
  if (isEvent(event, 'reasoningChunk', 'summaryChunk', 'planningChunk'))
    return flow(state, event, theme);
  if (isOwn && event.type === 'postCall') {
    // Only the time of the shown events: the run may be a fork, or may have paused for days.
    const elapsedMs = event.at - (context.events[0]?.at ?? event.at);
    const summary = describeReply({ ...event.reply, elapsedMs }, unit, theme);
    return picture(lines(answer(state, event.reply), ['', summary]), context);
  }
  const printed = lines(state, indented(event, theme));
  return isOwn && event.type === 'error' ? picture(printed, context) : printed;
};

interface PrintState {
  /** The text to print for this event. */
  readonly text: string;
  /** The stream of deltas that the current line belongs to; undefined at the start of a line. */
  readonly flowing: string | undefined;
  /** The model's last message, and its text as shown so far. */
  readonly messageId: string;
  readonly shown: string;
}

const blank: PrintState = { text: '', flowing: undefined, messageId: '', shown: '' };

/** Prints complete lines, after a line break if needed. */
const lines = (state: PrintState, added: readonly string[]): PrintState =>
  added.length === 0
    ? state
    : {
        ...state,
        text: `${state.text}${state.flowing === undefined ? '' : '\n'}${added.join('\n')}\n`,
        flowing: undefined,
      };

const indented = (event: AgentEvent, theme: Theme): readonly string[] => {
  const indent = indentOf(event);
  return describeEvent(event, theme, theme.width - indent.length).map((line) => indent + line);
};

const indentOf = ({ agent }: AgentEvent): string => '  '.repeat(agent.length);

type Chunk = EventOf<'reasoningChunk' | 'summaryChunk' | 'planningChunk'>;

/** Prints a delta. Only the answer is not indented. */
const flow = (state: PrintState, chunk: Chunk, { colors }: Theme): PrintState => {
  const { kind, messageId, callId, delta } = chunk;
  if (kind === 'toolInput') return state;
  const key = `${callId} ${messageId} ${kind}`;
  if (isAnswer(chunk)) {
    const shown = shownBefore(state, messageId) + delta;
    return write({ ...state, messageId, shown }, key, '\n', printable(delta));
  }
  const indent = indentOf(chunk);
  const aside = printable(delta).replaceAll('\n', `\n${indent}`);
  return write(state, key, indent + speaker(chunk), aside, colors.dim);
};

/** Continues the current line of a stream of deltas, or starts a new one. */
const write = (
  state: PrintState,
  flowing: string,
  opening: string,
  delta: string,
  paint: (text: string) => string = String,
): PrintState => {
  const isNew = state.flowing !== flowing;
  const text = isNew ? delta.trimStart() : delta;
  if (text === '') return state;
  const before = isNew && state.flowing !== undefined ? '\n' : '';
  return { ...state, text: state.text + before + paint(isNew ? opening + text : text), flowing };
};

const shownBefore = (state: PrintState, messageId: string): string =>
  state.messageId === messageId ? state.shown : '';

/** Whether it is text of the root agent, or of a sub-agent that answers for it. */
const isAnswer = ({ type, kind, parentId, speaks }: Chunk): boolean =>
  type !== 'planningChunk' && kind === 'text' && (parentId === undefined || speaks === true);

const speaker = (chunk: Chunk): string =>
  chunk.kind === 'text' && chunk.parentId !== undefined && !isAnswer(chunk)
    ? `${printableName(chunk.agent.at(-1) ?? '')}: `
    : '';

/** Prints the text of a reply that was not streamed or was edited later. */
const answer = (state: PrintState, reply: Reply): PrintState => {
  const text = textOf(reply);
  return text === '' || text === shownBefore(state, reply.id)
    ? state
    : lines(state, ['', printable(text)]);
};

const picture = (state: PrintState, { events, theme }: PrintContext): PrintState => {
  const drawn = marblePicture(events, theme);
  return drawn === '' ? state : lines(state, ['', drawn]);
};
