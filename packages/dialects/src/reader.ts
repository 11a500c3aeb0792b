import type { ModelChunk } from '@millrace/core';
import { createCursor, type Found, leadsOf, maxHead } from './cursor.js';
import {
  bareCall,
  bareJsonAt,
  bareJsonCall,
  bareName,
  type Format,
  type Frame,
  frames,
  harmonyCall,
  harmonyEnds,
  harmonyHeader,
  mayBeBare,
  mayBeHarmony,
  type ThinkingTag,
} from './formats.js';
import {
  areJsonCalls,
  createScan,
  plainName,
  type ToolTable,
  type WrittenCall,
} from './read-calls.js';
import { createUnwrapper } from '@millrace/core/values';
import { createWriter } from './writer.js';

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

export type Reader = ReturnType<typeof createReader>;

type State = () => boolean;

interface HeldCall {
  readonly read: readonly WrittenCall[];
  /** With all marks, as it is shown if it turns out to be quoted. */
  written: string;
  readonly isWithinLine: boolean;
}

const callInText =
  'It has a tool call within other text, so the call may be an example. Write only the call, or your answer without it.';

/** A state machine over the text of one reply. The result does not depend on how the text is divided. */
export const createReader = (init: ReaderInit) => {
  const { tags, formats, isOpened, tools, emit, mayRetract } = init;
  const cursor = createCursor(
    leadsOf(['<', ...tags.flat(), ...formats.map(({ open }) => open || '[')]),
  );
  const writer = createWriter(emit);
  /** Whether nothing but thoughts and space has come so far. */
  let isStart = true;
  let hasThought = false;
  let hasText = false;
  /** Calls after text: they are quotations if the text continues. */
  let held: HeldCall[] = [];
  /** A call that is not complete may have ended within a quotation. */
  let hasBroken = false;
  /** Closing marks that are dropped, as their opening marks were. */
  let pending: readonly string[] = [];

  const drop = (length: number): true => {
    const dropped = cursor.take(length);
    cursor.beginLine();
    const last = held.at(-1);
    if (last === undefined) writer.cut();
    else last.written += dropped;
    return true;
  };
  const headAt = (head: RegExp, from: number): RegExpExecArray | 'more' | undefined => {
    const text = cursor.peek(maxHead, from);
    const found = head.exec(text);
    if (found !== null) return found;
    // Two words are no head.
    const mayGrow =
      text.length < maxHead && !cursor.isEnd && !/^\s*[^\s<[{(`]+\s+[^\s<[{(`]/.test(text);
    return mayGrow ? 'more' : undefined;
  };
  /** The first mark that is here; `more` if one may be. */
  const firstOf = <T>(candidates: readonly T[], look: (candidate: T) => Found): Found => {
    let found: Found;
    for (const candidate of candidates) {
      const seen = look(candidate);
      if (seen === true) return true;
      found ??= seen;
    }
    return found;
  };

  const text: State = () => {
    if (cursor.left === 0) return false;
    const isQuoted = cursor.isInCode || (cursor.isIndented && hasText && !writer.isCut);
    const found = isQuoted ? undefined : firstOf(marks, (look) => look());
    if (found !== undefined) return found === true;
    const run = cursor.takeRun();
    if (run === undefined) return false;
    writeText(run);
    return true;
  };
  const writeText = (written: string): void => {
    const last = held.at(-1);
    if (written.trim() === '' && last !== undefined) {
      last.written += written;
      return;
    }
    if (written.trim() !== '') {
      isStart = false;
      hasText = true;
      quoteHeld(true);
    }
    writer.write('text', written);
  };
  /** The model is asked again about a call on lines of its own: it may have been meant. */
  const quoteHeld = (isReported: boolean): void => {
    const quoted = held;
    held = [];
    for (const { written, isWithinLine } of quoted) {
      writer.write('text', written);
      if (isReported && !isWithinLine) init.emitCall({ problem: callInText }, written);
    }
  };
  const emitHeld = (): void => {
    const calls = held;
    held = [];
    if (calls.length > 0) writer.cut();
    for (const { read, written } of calls) read.forEach((each) => init.emitCall(each, written));
  };
  const openThought = (): Found =>
    isStart
      ? firstOf(tags, ([open, close]) => {
          const found = cursor.startsWith(open);
          if (found === true) beginThought(open.length, [close]);
          return found;
        })
      : undefined;
  /** The end of a thought that the chat template has opened: all text before it was the thought. */
  const strayClose = (): Found =>
    hasThought
      ? undefined
      : firstOf(tags, ([, close]) => {
          const found = cursor.startsWith(close);
          if (found !== true) return found;
          const after = cursor.peek(maxHead, close.length);
          const isLast = /^[ \t\r]*(?:\n|$)/.test(after);
          const mayGrow = !cursor.isEnd && after.length < maxHead && after.trim() === '';
          if (!cursor.isLineStart && isLast && mayGrow && !after.includes('\n')) return 'more';
          if (!cursor.isLineStart && !isLast) return undefined;
          quoteHeld(false);
          hasText = false;
          if (mayRetract()) writer.retract('thinking', 'The text before the answer was a thought.');
          hasThought = true;
          isStart = true;
          return drop(close.length);
        });
  /** The header of a message in the channels of gpt-oss. */
  const harmonyMessage = (): Found => {
    const next = cursor.peek();
    // The space before may indent it.
    if (!isStart && /^\s/.test(next)) return undefined;
    const [whole, before, channel, after] = harmonyHeader.exec(next) ?? [];
    if (whole === undefined) {
      return mayBeHarmony(next, isStart) && next.length < maxHead && !cursor.isEnd
        ? 'more'
        : undefined;
    }
    const recipient = before ?? after;
    if (recipient !== undefined && formats.length === 0) return undefined;
    pending = harmonyEnds;
    if (recipient !== undefined) beginCall(harmonyCall, plainName(recipient, tools), whole.length);
    else if (channel === 'analysis') beginThought(whole.length, harmonyEnds);
    else {
      drop(whole.length);
      isStart = false;
    }
    return true;
  };
  const closingMark = (): Found =>
    firstOf(pending, (close) => {
      const found = cursor.startsWith(close);
      return found === true ? drop(close.length) : found;
    });
  const frameAt = ({ open, head, close }: Frame): Found => {
    const opens = cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    if (close !== undefined) {
      if (!isStart && !writer.isCut) return undefined;
      pending = [...pending, close];
    }
    return drop(open.length + found[0].length);
  };
  const formatAt = (candidate: Format): Found => {
    const { open, head, startsLine, isNamed } = candidate;
    if (startsLine === true && !cursor.isLineStart) return undefined;
    const opens = cursor.startsWith(open);
    if (opens !== true) return opens;
    const found = headAt(head, open.length);
    if (found === 'more' || found === undefined) return found;
    const after = cursor.peek(maxHead, open.length);
    if (isNamed === true && bareName(after, tools) === undefined) return undefined;
    beginCall(candidate, found[1], open.length + found[0].length);
    return true;
  };
  const callMark = (): Found => {
    if (formats.length === 0) return undefined;
    return firstOf(frames, frameAt) ?? firstOf(formats, formatAt);
  };
  /** A reply that is calls as in Python, and nothing else. */
  const bareMark = (): Found => {
    if (!isStart || formats.length === 0) return undefined;
    const next = cursor.peek();
    if (bareName(next, tools) !== undefined) {
      beginCall(bareCall, undefined, 0);
      return true;
    }
    const json = init.hasBareJson && bareJsonAt(next, tools);
    if (json === true) {
      beginCall(bareJsonCall, undefined, 0);
      return true;
    }
    if (json === 'more' && next !== '' && next.length < maxHead && !cursor.isEnd) return 'more';
    return mayBeBare(next, tools) && next.length < maxHead && !cursor.isEnd ? 'more' : undefined;
  };
  const marks = [openThought, strayClose, harmonyMessage, closingMark, callMark, bareMark];

  let closes: readonly string[] = [];
  const tokens = formats.filter(({ isToken }) => isToken === true);
  const tokenFrames = formats.length === 0 ? [] : frames.filter(({ isToken }) => isToken === true);

  const beginThought = (length: number, closing: readonly string[]): void => {
    if (length > 0) drop(length);
    closes = closing;
    hasThought = true;
    state = thought;
  };
  const thought: State = () => {
    if (cursor.left === 0) return false;
    const opening = isOpened && writer.isEmpty ? openingMark() : undefined;
    if (opening !== undefined) return opening === true;
    const closing = firstOf(closes, (close) => {
      const found = cursor.startsWith(close);
      return found === true ? endThought(close.length) : found;
    });
    if (closing !== undefined) return closing === true;
    // The marks of calls and messages end a thought, too, if they are tokens.
    state = text;
    const next = pending.length > 0 ? harmonyMessage() : undefined;
    const found = next ?? firstOf(tokenFrames, frameAt) ?? firstOf(tokens, formatAt);
    if (found === true) return true;
    state = thought;
    if (found === 'more') return false;
    writer.write('thinking', cursor.takeThought());
    return true;
  };
  /** A model may write the opening mark nevertheless. */
  const openingMark = (): Found =>
    firstOf(tags, ([open]) => {
      const found = cursor.startsWith(open);
      return found === true ? drop(open.length) : found;
    });
  const endThought = (length: number): true => {
    isStart = true;
    state = text;
    return drop(length);
  };

  let format = bareCall;
  let named: string | undefined;
  let scan = createScan();
  let lead = '';
  let body = '';
  let isOwn = false;
  let isWithinLine = false;
  let hasClosed = false;

  const beginCall = (next: Format, toolName: string | undefined, length: number): void => {
    isWithinLine = !cursor.isLineStart;
    isOwn = next.isToken === true || cursor.isLineStart;
    lead = cursor.take(length);
    format = next;
    named = toolName;
    body = '';
    hasClosed = false;
    scan = createScan();
    state = format.isMarked === true ? markedCall : call;
  };
  /** A body that ends with its brackets, or before a mark. */
  const call: State = () => {
    if (cursor.left === 0 && !cursor.isEnd) return false;
    const end = scan.feed(cursor.text, cursor.at);
    body += cursor.takeTo(end?.end ?? -1);
    if (end === undefined && !cursor.isEnd) return false;
    const isCut = end?.isClosed !== true && !isClosedHere();
    if (format === bareJsonCall && !isCut && !areJsonCalls(body, tools)) leaveBare();
    else if ((format === bareCall || format === bareJsonCall) && !isCut) state = bareRest;
    else if (format.repeats !== true && end?.isClosed === true) state = argumentsRest;
    else if (end === undefined) settleAtEnd();
    else settle(isCut);
    return true;
  };
  /** Arguments are one object. If another one follows, both are what the model wrote, which core refuses. */
  const argumentsRest: State = () => {
    const next = cursor.peek();
    const [between = ''] = /^[\s;,]*/.exec(next) ?? [];
    const rest = next.slice(between.length);
    if (/^\[?\s*$/.test(rest) && next.length < maxHead && !cursor.isEnd) return false;
    if (!/^(?:\{|\[\s*\{)/.test(rest)) {
      settle(false);
      return true;
    }
    body += cursor.take(between.length);
    scan = createScan();
    state = call;
    return true;
  };
  /** A quote that is not escaped hides the closing mark. */
  const settleAtEnd = (): void => {
    const whole = body;
    const ends = format.closes.map((close) => whole.indexOf(close)).filter((end) => end >= 0);
    const end = Math.min(whole.length, ...ends);
    const isClosed = ends.length > 0 && /[}\])]\s*$/.test(whole.slice(0, end));
    body = isClosed ? whole.slice(0, end) : whole;
    settle(!isClosed);
    const close = format.closes.find((it) => whole.startsWith(it, end)) ?? '';
    if (isClosed) writeText(whole.slice(end + close.length));
  };
  const isClosedHere = (): boolean =>
    [...format.closes, ...pending].some((close) => cursor.startsWith(close) === true);
  /** A body that ends with its closing mark. */
  const markedCall: State = () => {
    const [close = ''] = format.closes;
    const end = cursor.text.indexOf(close, cursor.at);
    if (end < 0) {
      const held = cursor.isEnd ? 0 : close.length - 1;
      body += cursor.take(Math.max(0, cursor.left - held));
      if (!cursor.isEnd) return false;
      settle(true);
      return true;
    }
    body += cursor.takeTo(end);
    settle(false);
    return true;
  };
  /** A call that is cut off runs nothing, nor does one within a line that names no tool. */
  const settle = (isCut: boolean): void => {
    const problem = hasBroken ? 'It follows a tool call that is not complete.' : undefined;
    const why = isCut ? 'The tool call is not complete.' : problem;
    const read: readonly WrittenCall[] =
      why === undefined
        ? format.read(body, named, tools)
        : [{ name: named ?? bareName(body, tools), problem: why }];
    hasBroken ||= isCut;
    const names = isOwn || read.some(({ name }) => name !== undefined && tools.has(name));
    const written = lead + body;
    isStart = false;
    state = names ? afterCall : text;
    if (!names) writeText(written);
    else if (hasText) held.push({ read, written, isWithinLine });
    else {
      writer.cut();
      read.forEach((each) => init.emitCall(each, written));
    }
  };
  /** Closing marks, or another call in the same mark. */
  const afterCall: State = () => {
    const next = cursor.peek();
    const space = next.length - next.trimStart().length;
    if (space === cursor.left) {
      if (cursor.isEnd) state = text;
      else if (space >= maxHead) cursor.take(space);
      return cursor.isEnd && cursor.left > 0;
    }
    const closing = firstOf(format.closes, (close) => {
      const found = cursor.startsWith(close, space);
      return found === true ? drop(space + close.length) : found;
    });
    if (closing === true) hasClosed = true;
    if (closing !== undefined) return closing === true;
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another =
      format.repeats === true && !hasClosed ? headAt(format.head, between.length) : undefined;
    if (another === 'more') return false;
    if (another === undefined) {
      cursor.beginLine();
      state = text;
    } else {
      cursor.beginLine();
      beginCall(format, undefined, between.length + another[0].length);
    }
    return true;
  };
  /** Calls without a mark have nothing after them but space and the end of the turn; otherwise, they were prose. */
  const bareRest: State = () => {
    const next = cursor.peek();
    if (next.trim() === '') {
      body += cursor.take(next.length);
      if (cursor.left > 0) return true;
      if (cursor.isEnd) settle(false);
      return cursor.isEnd;
    }
    const space = next.length - next.trimStart().length;
    const closing = firstOf(format.closes, (close) => cursor.startsWith(close, space));
    if (closing !== undefined) {
      if (closing === true) settle(false);
      return closing === true;
    }
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another = headAt(format.head, between.length);
    if (another === 'more') return false;
    if (another !== undefined) {
      body += cursor.take(between.length + another[0].length);
      scan = createScan();
      state = call;
      return true;
    }
    leaveBare();
    return true;
  };
  const leaveBare = (): void => {
    state = text;
    writeText(body);
  };

  let state: State = text;
  if (isOpened)
    beginThought(
      0,
      tags.map(([, close]) => close),
    );
  const run = (): void => {
    while (state());
    cursor.compact();
  };
  const push = (piece: string): void => {
    cursor.push(piece);
    run();
  };
  const unwrapper =
    init.isWhole === true || isOpened || formats.length === 0
      ? undefined
      : createUnwrapper({
          push,
          mayBeCall: (next) => callStart(next, init),
          isCall: (whole) => isWholeCall(whole, init),
          onQuoted: (whole) => init.emitCall({ problem: callInText }, whole),
        });
  return {
    push: unwrapper?.push ?? push,
    /** Ends the reply. If it is not whole, a call that has begun is dropped. */
    end: (isWhole: boolean): void => {
      unwrapper?.end();
      cursor.end();
      const isCalling = ![text, thought, afterCall, argumentsRest].includes(state);
      if (isWhole || !isCalling) run();
      emitHeld();
      if (isWhole && isOpened && state === thought && mayRetract()) {
        writer.retract('text', 'The text is the answer: the thought did not end.');
      }
      writer.end();
    },
  };
};

/** Whether the text starts with the mark of a call, or as a call without one. */
const callStart = (text: string, { formats, tools, hasBareJson }: ReaderInit): boolean | 'more' => {
  const json = hasBareJson && bareJsonAt(text, tools);
  if (bareName(text, tools) !== undefined || json === true) return true;
  const lower = text.toLowerCase();
  const opens = [...frames, ...formats].map(({ open }) => open.toLowerCase()).filter(Boolean);
  const marks = ['<|start|>', '<|channel|>', 'to=', ...opens];
  if (marks.some((mark) => lower.startsWith(mark))) return true;
  return json === 'more' || mayBeBare(text, tools) || marks.some((mark) => mark.startsWith(lower))
    ? 'more'
    : false;
};

const isWholeCall = (text: string, init: ReaderInit): boolean => {
  const calls: WrittenCall[] = [];
  const kinds = new Set<string>();
  const reader = createReader({
    ...init,
    isWhole: true,
    emit: ({ type }) => kinds.add(type),
    emitCall: (call) => calls.push(call),
    mayRetract: () => false,
  });
  reader.push(text);
  reader.end(true);
  const areWhole = calls.every(
    ({ name = '', problem }) => problem === undefined && init.tools.has(name),
  );
  return !kinds.has('text') && calls.length > 0 && areWhole;
};
