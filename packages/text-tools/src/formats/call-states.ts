import { firstOf, type Found, maxHead } from './cursor.js';
import { bareCall, bareJsonCall, bareName, type Format } from './formats.js';
import { areJsonCalls, type WrittenCall } from './read-calls.js';
import { createJsonScan, feedValue, type JsonScan } from '../json-scan.js';
import type { Reading, State } from './reading.js';

interface OpenCall {
  format: Format;
  named: string | undefined;
  scan: JsonScan;
  /** Its opening mark, and what came after it. */
  lead: string;
  body: string;
  /** Whether it counts without the name of a tool. */
  isOwn: boolean;
  isWithinLine: boolean;
  /** Whether calls without a mark precede it. */
  isAnother: boolean;
  hasClosed: boolean;
}

/** The states from the opening mark of a call to what follows its closing marks. */
export const createCallStates = (reading: Reading) => {
  const { cursor } = reading;
  const open = startOf(bareCall, undefined, '', false);
  const settleOpen = createSettle(reading, open);

  const begin = (format: Format, named: string | undefined, length: number): void => {
    const { isLineStart } = cursor;
    Object.assign(open, startOf(format, named, cursor.take(length), isLineStart));
    reading.state = format.isMarked === true ? marked : bodies.bracketed;
  };
  const settle = (isCut: boolean): void => {
    if (settleOpen(isCut)) reading.state = afterCall;
    else reading.toText();
  };
  const bodies = bracketedStates(reading, open, settle);
  const marked = markedState(reading, open, settle);
  const afterCall = afterCallState(reading, open, begin);
  return {
    begin,
    /** Whether a call has begun that is dropped if the reply is not whole. */
    get isWithin() {
      return [bodies.bracketed, bodies.bareRest, marked].includes(reading.state);
    },
  };
};

const startOf = (
  format: Format,
  named: string | undefined,
  lead: string,
  isLineStart: boolean,
): OpenCall => ({
  format,
  named,
  scan: createJsonScan(undefined, true),
  lead,
  body: '',
  isOwn: format.isToken === true || isLineStart,
  isWithinLine: !isLineStart,
  isAnother: false,
  hasClosed: false,
});

type Settle = (isCut: boolean) => void;

/** A body that ends with its brackets, or before a mark. */
const bracketedStates = (reading: Reading, open: OpenCall, settle: Settle) => {
  const { cursor, init } = reading;

  const bracketed: State = () => {
    if (cursor.left === 0 && !cursor.isEnd) return false;
    let end: ReturnType<typeof feedValue>;
    open.body += cursor.scan((text, from) => {
      end = feedValue(open.scan, text, from);
      return end?.end ?? text.length;
    });
    if (end === undefined && !cursor.isEnd) return false;
    const closed = end?.isClosed === true ? true : closedHere();
    if (closed === 'more') return false;
    const { format, body } = open;
    const isCut = closed !== true;
    const isBare = !isCut && (format === bareCall || format === bareJsonCall);
    const mayBeProse = isBare && format === bareJsonCall && !open.isAnother;
    if (mayBeProse && !areJsonCalls(body, init.tools)) leaveBare(reading, open);
    else if (isBare) reading.state = bareRest;
    else if (format.repeats !== true && end?.isClosed === true) reading.state = argumentsRest;
    else if (end === undefined) settleAtEnd(reading, open, settle);
    else settle(isCut);
    return true;
  };
  const closedHere = (): Found =>
    firstOf([...open.format.closes, ...reading.pending], (close) => cursor.startsWith(close));
  const readAnother = (length: number): void => {
    open.body += cursor.take(length);
    open.scan = createJsonScan(undefined, true);
    reading.state = bracketed;
  };
  /** Arguments are one object. If another one follows, both are what the model wrote, which core refuses. */
  const argumentsRest: State = () => {
    const next = cursor.peek(maxHead);
    const [between = ''] = /^[\s;,]*/.exec(next) ?? [];
    const rest = next.slice(between.length);
    if (/^\[?\s*$/.test(rest) && next.length < maxHead && !cursor.isEnd) return false;
    if (/^(?:\{|\[\s*\{)/.test(rest)) readAnother(between.length);
    else settle(false);
    return true;
  };
  const bareRest = bareRestState(reading, open, settle, readAnother);
  return { bracketed, bareRest };
};

/** A quote that is not escaped hides the closing mark. */
const settleAtEnd = (reading: Reading, open: OpenCall, settle: Settle): void => {
  const { body: whole, format } = open;
  const ends = format.closes.map((close) => whole.indexOf(close)).filter((end) => end >= 0);
  const end = Math.min(whole.length, ...ends);
  const isClosed = ends.length > 0 && /[}\])]\s*$/.test(whole.slice(0, end));
  open.body = isClosed ? whole.slice(0, end) : whole;
  settle(!isClosed);
  const close = format.closes.find((it) => whole.startsWith(it, end)) ?? '';
  if (isClosed) reading.writeText(whole.slice(end + close.length));
};

/** Calls without a mark have nothing after them but space and the end of the turn; otherwise, they were prose. */
const bareRestState =
  (
    reading: Reading,
    open: OpenCall,
    settle: Settle,
    readAnother: (length: number) => void,
  ): State =>
  () => {
    const { cursor } = reading;
    const next = cursor.peek(maxHead);
    if (next.trim() === '') {
      open.body += cursor.take(next.length);
      if (cursor.left > 0) return true;
      if (cursor.isEnd) settle(false);
      return cursor.isEnd;
    }
    const { closes, head } = open.format;
    const space = next.length - next.trimStart().length;
    const closing = firstOf(closes, (close) => closesCall(reading, close, space));
    if (closing === true) settle(false);
    if (closing !== undefined) return closing === true;
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another = reading.headAt(head, between.length);
    if (another === 'more') return false;
    open.isAnother = another !== undefined;
    if (another === undefined) leaveBare(reading, open);
    else readAnother(between.length + another[0].length);
    return true;
  };

const leaveBare = (reading: Reading, { body }: OpenCall): void => {
  reading.toText();
  reading.writeText(body);
};

/** A body that ends with its closing mark. */
const markedState =
  ({ cursor }: Reading, open: OpenCall, settle: Settle): State =>
  () => {
    const [close = ''] = open.format.closes;
    const end = cursor.find(close);
    if (end === undefined) {
      const held = cursor.isEnd ? 0 : close.length - 1;
      open.body += cursor.take(Math.max(0, cursor.left - held));
      if (cursor.isEnd) settle(true);
      return cursor.isEnd;
    }
    open.body += cursor.take(end);
    settle(false);
    return true;
  };

/**
 * Emits a call, holds it back after text, or leaves it as text, and returns whether it is one. A call that is cut off
 * runs nothing, nor does one within a line that names no tool.
 */
const createSettle = (reading: Reading, open: OpenCall): ((isCut: boolean) => boolean) => {
  const { init, writer } = reading;
  const { tools } = init;
  /** A call that is not complete may have ended within a quotation. */
  let hasBroken = false;
  return (isCut) => {
    const { format, named, lead, body, isOwn, isWithinLine } = open;
    const problem = hasBroken ? 'It follows a tool call that is not complete.' : undefined;
    const why = isCut ? 'The tool call is not complete.' : problem;
    const read: readonly WrittenCall[] =
      why === undefined
        ? format.read(body, named, tools)
        : [{ name: named ?? bareName(body, tools), problem: why }];
    hasBroken ||= isCut;
    const names = isOwn || read.some(({ name }) => name !== undefined && tools.has(name));
    const written = lead + body;
    reading.isStart = false;
    if (!names) reading.writeText(written);
    else if (reading.hasText || reading.interrupted.length > 0)
      reading.held.push({ read, written, isWithinLine });
    else {
      writer.cut();
      read.forEach((each) => {
        init.emitCall(each, written);
      });
    }
    return names;
  };
};

/** Closing marks, or another call in the same mark. */
const afterCallState =
  (
    reading: Reading,
    open: OpenCall,
    begin: (format: Format, named: undefined, length: number) => void,
  ): State =>
  () => {
    const { cursor } = reading;
    const { format } = open;
    const next = cursor.peek(maxHead);
    const space = next.length - next.trimStart().length;
    if (space === cursor.left) {
      if (cursor.isEnd) reading.toText();
      else if (space >= maxHead) cursor.take(space);
      return cursor.isEnd && cursor.left > 0;
    }
    const closing = firstOf(format.closes, (close) => {
      const found = closesCall(reading, close, space);
      return found === true ? reading.drop(space + close.length) : found;
    });
    open.hasClosed ||= closing === true;
    if (closing !== undefined) return closing === true;
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another =
      format.repeats === true && !open.hasClosed
        ? reading.headAt(format.head, between.length)
        : undefined;
    if (another === 'more') return false;
    cursor.beginLine();
    if (another === undefined) reading.toText();
    else begin(format, undefined, between.length + another[0].length);
    return true;
  };

/** Whether this mark follows a call that ends by itself. The end of a reply may cut off a part of it. */
const closesCall = ({ cursor }: Reading, close: string, from: number): Found =>
  cursor.startsWith(close, from) ?? (cursor.endsWithin(close, from) ? true : undefined);
