import type { ModelChunk } from 'millrace';
import { createMarkCursor, leadsOf, type MarkCursor, maxHead } from './cursor.js';
import type { Format, ThinkingTag } from './formats.js';
import type { ToolTable, WrittenCall } from './read-calls.js';
import { createWriter, type Writer } from './writer.js';

export interface ReaderInit {
  readonly tags: readonly ThinkingTag[];
  /** The formats of tool calls; without any, only thoughts are separated. */
  readonly formats: readonly Format[];
  /** Whether the reply starts within a thought. */
  readonly isOpened: boolean;
  readonly tools: ToolTable;
  /** Whether JSON without marks may be a call. A dialect reads it itself. */
  readonly hasBareJson: boolean;
  readonly emit: (chunk: ModelChunk) => void;
  readonly emitCall: (call: WrittenCall, written: string) => void;
  /** Whether text that was emitted can be taken back. */
  readonly mayRetract: () => boolean;
  /** Whether the text is what marks around a whole reply contained. */
  readonly isWhole?: boolean;
}

export interface HeldCall {
  readonly read: readonly WrittenCall[];
  /** With all marks, as it is shown if it turns out to be quoted. */
  written: string;
  readonly isWithinLine: boolean;
}

/** Reads some text, and returns whether there may be more to read. */
export type State = () => boolean;

export const callInText =
  'It has a tool call within other text, so the call may be an example. Write only the call, or your answer without it.';

export const callInThought =
  'It has a tool call only within its thought, which may be a draft. Write the call after the thought, or your answer.';

/** The part of a reader that marks, calls and thoughts share. */
export interface Reading {
  readonly init: ReaderInit;
  readonly cursor: MarkCursor;
  readonly writer: Writer;
  state: State;
  /** Whether nothing but thoughts and space has come so far. */
  isStart: boolean;
  hasThought: boolean;
  hasText: boolean;
  /** Calls after text: they are quotations if the text continues. */
  held: HeldCall[];
  /** Closing marks that are dropped, as their opening marks were. */
  pending: readonly string[];
  /** The closing marks of a thought that a token has ended. If one follows, the calls before it are drafts. */
  interrupted: readonly string[];
  /** A call within a thought. */
  draft: string | undefined;
  readonly toText: () => void;
  /** Takes a mark, which is not shown. */
  readonly drop: (length: number) => true;
  readonly headAt: (head: RegExp, from: number) => RegExpExecArray | 'more' | undefined;
  readonly writeText: (written: string) => void;
  /** Shows calls as text. The model is asked again about a call on lines of its own: it may have been meant. */
  readonly quoteHeld: (isReported: boolean) => void;
  readonly emitHeld: () => void;
}

export const createReading = (init: ReaderInit, text: State): Reading => {
  const { tags, formats } = init;
  const cursor = createMarkCursor(
    leadsOf(['<', ...tags.flat(), ...formats.map(({ open }) => open || '[')]),
  );
  const writer = createWriter(init.emit);
  const { quoteHeld, emitHeld } = heldCalls(init, writer, () => {
    const { held } = reading;
    reading.held = [];
    return held;
  });
  const reading: Reading = {
    init,
    cursor,
    writer,
    state: text,
    isStart: true,
    hasThought: false,
    hasText: false,
    held: [],
    pending: [],
    interrupted: [],
    draft: undefined,
    toText: () => {
      reading.state = text;
    },
    drop: (length) => {
      const dropped = cursor.take(length);
      cursor.beginLine();
      const last = reading.held.at(-1);
      if (last === undefined) writer.cut();
      else last.written += dropped;
      return true;
    },
    headAt: (head, from) => headIn(cursor, head, from),
    writeText: (written) => {
      const last = reading.held.at(-1);
      if (written.trim() === '' && last !== undefined) {
        last.written += written;
        return;
      }
      if (written.trim() !== '') {
        reading.isStart = false;
        reading.hasText = true;
        quoteHeld(true);
      }
      writer.write('text', written);
    },
    quoteHeld,
    emitHeld,
  };
  return reading;
};

/** Quotes or emits calls that were held back, once the text after them has come. */
const heldCalls = (
  { emitCall }: ReaderInit,
  writer: Writer,
  takeHeld: () => readonly HeldCall[],
): Pick<Reading, 'quoteHeld' | 'emitHeld'> => ({
  quoteHeld: (isReported) => {
    for (const { written, isWithinLine } of takeHeld()) {
      writer.write('text', written);
      if (isReported && !isWithinLine) emitCall({ problem: callInText }, written);
    }
  },
  emitHeld: () => {
    const calls = takeHeld();
    if (calls.length > 0) writer.cut();
    for (const { read, written } of calls) {
      read.forEach((each) => {
        emitCall(each, written);
      });
    }
  },
});

const headIn = (
  cursor: MarkCursor,
  head: RegExp,
  from: number,
): RegExpExecArray | 'more' | undefined => {
  const text = cursor.peek(maxHead, from);
  const found = head.exec(text);
  if (found !== null) return found;
  // Two words are no head.
  const mayGrow =
    text.length < maxHead && !cursor.isEnd && !/^\s*[^\s<[{(`]+\s+[^\s<[{(`]/.test(text);
  return mayGrow ? 'more' : undefined;
};
