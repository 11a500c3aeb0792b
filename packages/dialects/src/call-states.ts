import { firstOf, type Found, maxHead } from './cursor.js';
import { bareCall, bareJsonCall, bareName, type Format } from './formats.js';
import { areJsonCalls, createScan, type WrittenCall } from './read-calls.js';
import type { Reading, State } from './reading.js';

export const createCallStates = (reading: Reading) => {
  const { cursor, writer, init } = reading;
  const { tools } = init;
  /** A call that is not complete may have ended within a quotation. */
  let hasBroken = false;
  let format = bareCall;
  let named: string | undefined;
  let scan = createScan();
  let lead = '';
  let body = '';
  let isOwn = false;
  let isWithinLine = false;
  let hasClosed = false;
  /** Whether calls without a mark precede this one. */
  let isAnother = false;

  const beginCall = (next: Format, toolName: string | undefined, length: number): void => {
    isWithinLine = !cursor.isLineStart;
    isOwn = next.isToken === true || cursor.isLineStart;
    lead = cursor.take(length);
    format = next;
    named = toolName;
    body = '';
    hasClosed = false;
    isAnother = false;
    scan = createScan();
    reading.state = format.isMarked === true ? markedCall : call;
  };
  /** A body that ends with its brackets, or before a mark. */
  const call: State = () => {
    if (cursor.left === 0 && !cursor.isEnd) return false;
    const end = scan.feed(cursor.text, cursor.at);
    body += cursor.takeTo(end?.end ?? -1);
    if (end === undefined && !cursor.isEnd) return false;
    const closed = end?.isClosed === true ? true : closedHere();
    if (closed === 'more') return false;
    const isCut = closed !== true;
    if (format === bareJsonCall && !isCut && !isAnother && !areJsonCalls(body, tools)) leaveBare();
    else if ((format === bareCall || format === bareJsonCall) && !isCut) reading.state = bareRest;
    else if (format.repeats !== true && end?.isClosed === true) reading.state = argumentsRest;
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
    reading.state = call;
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
    if (isClosed) reading.writeText(whole.slice(end + close.length));
  };
  const closedHere = (): Found =>
    firstOf([...format.closes, ...reading.pending], (close) => cursor.startsWith(close));
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
    reading.isStart = false;
    if (names) reading.state = afterCall;
    else reading.toText();
    if (!names) reading.writeText(written);
    else if (reading.hasText) reading.held.push({ read, written, isWithinLine });
    else {
      writer.cut();
      read.forEach((each) => init.emitCall(each, written));
    }
  };
  /** Whether this mark follows a call that ends by itself. The end of a reply may cut off a part of it. */
  const closes = (close: string, from: number): Found =>
    cursor.startsWith(close, from) ?? (cursor.endsWithin(close, from) ? true : undefined);
  /** Closing marks, or another call in the same mark. */
  const afterCall: State = () => {
    const next = cursor.peek();
    const space = next.length - next.trimStart().length;
    if (space === cursor.left) {
      if (cursor.isEnd) reading.toText();
      else if (space >= maxHead) cursor.take(space);
      return cursor.isEnd && cursor.left > 0;
    }
    const closing = firstOf(format.closes, (close) => {
      const found = closes(close, space);
      return found === true ? reading.drop(space + close.length) : found;
    });
    if (closing === true) hasClosed = true;
    if (closing !== undefined) return closing === true;
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another =
      format.repeats === true && !hasClosed
        ? reading.headAt(format.head, between.length)
        : undefined;
    if (another === 'more') return false;
    if (another === undefined) {
      cursor.beginLine();
      reading.toText();
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
    const closing = firstOf(format.closes, (close) => closes(close, space));
    if (closing !== undefined) {
      if (closing === true) settle(false);
      return closing === true;
    }
    const [between = ''] = /^\s*[;,]?/.exec(next) ?? [];
    const another = reading.headAt(format.head, between.length);
    if (another === 'more') return false;
    if (another !== undefined) {
      body += cursor.take(between.length + another[0].length);
      isAnother = true;
      scan = createScan();
      reading.state = call;
      return true;
    }
    leaveBare();
    return true;
  };
  const leaveBare = (): void => {
    reading.toText();
    reading.writeText(body);
  };

  return {
    begin: beginCall,
    /** Whether a call has begun that is dropped if the reply is not whole. */
    get isWithin() {
      return [call, markedCall, bareRest].includes(reading.state);
    },
  };
};
