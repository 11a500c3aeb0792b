import { createCallMarks } from './call-marks.js';
import { createCallStates } from './call-states.js';
import { firstOf } from './cursor.js';
import { bareJsonAt, bareName, frames, mayBeBare } from './formats.js';
import type { WrittenCall } from './read-calls.js';
import {
  callInText,
  callInThought,
  createReading,
  type ReaderInit,
  type State,
} from './reading.js';
import { createThoughtStates } from './thought-states.js';
import { createUnwrapper } from '../unwrap.js';

export type Reader = ReturnType<typeof createReader>;

/** A state machine over the text of one reply. The result does not depend on how the text is divided. */
export const createReader = (init: ReaderInit) => {
  const { tags, isOpened, mayRetract } = init;

  const text: State = () => {
    if (reading.cursor.left === 0) return false;
    const isQuoted =
      reading.cursor.isQuoted() ||
      (reading.cursor.isIndented && reading.hasText && !reading.writer.isCut);
    const found = isQuoted ? undefined : firstOf(marks, (look) => look());
    if (found !== undefined) return found === true;
    const run = reading.cursor.takeRun();
    if (run === undefined) return false;
    reading.writeText(run);
    return true;
  };
  const reading = createReading(init, text);
  const { cursor, writer } = reading;
  const calls = createCallStates(reading);
  const thoughts = createThoughtStates(reading, () => callMarks.tokenMark());
  const callMarks = createCallMarks(reading, {
    beginCall: calls.begin,
    beginThought: thoughts.begin,
  });
  const marks = [...thoughts.marks, ...callMarks.marks];

  if (isOpened)
    thoughts.begin(
      0,
      tags.map(([, close]) => close),
    );
  const run = (): void => {
    while (reading.state());
    cursor.mark();
    cursor.cut();
  };
  const push = (piece: string): void => {
    cursor.push(piece);
    run();
  };
  const unwrapper = unwrapperOf(init, push);
  return {
    push: unwrapper?.push ?? push,
    /** Ends the reply. If it is not whole, a call that has begun is dropped. */
    end: (isWhole: boolean): void => {
      unwrapper?.end();
      cursor.end();
      if (isWhole || !calls.isWithin) run();
      reading.emitHeld();
      const { draft, hasText } = reading;
      if (draft !== undefined && !hasText) init.emitCall({ problem: callInThought }, draft);
      if (isWhole && isOpened && reading.state === thoughts.thought && mayRetract()) {
        writer.retract('text', 'The text is the answer: the thought did not end.');
      }
      writer.end();
    },
  };
};

/** Takes the marks off a reply that is one call; a thought that the template has opened is not in marks. */
const unwrapperOf = (init: ReaderInit, push: (piece: string) => void) =>
  init.isWhole === true || init.isOpened || init.formats.length === 0
    ? undefined
    : createUnwrapper({
        push,
        mayBeCall: (next) => callStart(next, init),
        isCall: (whole) => isWholeCall(whole, init),
        onQuoted: (whole) => init.emitCall({ problem: callInText }, whole),
      });

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
