import type { ParserState, ActionContext, State } from './parser-state.js';
import { type Capture, emittingCapture, silentCapture } from './capture.js';
import { withDoubled } from '../json-scan.js';
import { closeFence } from './fence-marks.js';
import type { Reading } from './parse-result.js';
import { addCalls, addFault, actionInText, repairedFrom, invalidate } from './parse-result.js';
import type { LabelWords, Lookahead, Undecided } from './scanner.js';
import {
  afterSpace,
  hasMark,
  inputLabelAt,
  jsonAt,
  labelAt,
  lookAhead,
  maxPeek,
} from './scanner.js';
import { fits, hasArguments, readArguments, readCaptured } from './read-entry.js';
import type { Channel } from './output-channel.js';

/** In characters: how often long JSON is looked at, and how much of it is held if it could be anything. */
const step = 256;
const maxUnclear = 1_024;

export type JsonStates = ReturnType<typeof createJsonStates>;

export const createJsonStates = (parser: ParserState) => {
  const { dialect, words, result, needs, cursor, output } = parser;
  const { emitter } = output;
  const actionWords = words.filter(([, label]) => label === 'action');
  let capture: Capture = silentCapture(needs);
  /** How much of the JSON is shown as text, because it looks like data. */
  let shown = 0;
  let mayShow = false;
  let isListed = false;
  let isAfterLine = false;
  let isInline = false;
  let isQuoted = false;
  let before: Channel | undefined;
  /** Actions in prose that count if nothing else follows. */
  let waiting: Reading[] = [];
  let isOwnForm = false;
  let isInFence = false;

  const beginJson = (at: ActionContext, channel?: Channel): void => {
    parser.context = at;
    before = channel;
    isQuoted = cursor.isInCode && at.fence === undefined;
    isInline = waiting.length === 0 && at.fence === undefined && !cursor.isLineStart;
    isInFence = at.fence !== undefined || (waiting.length > 0 && isInFence);
    const emitsContent =
      (at.kind === 'own' || dialect.isList) && at.name === undefined && at.kind !== 'answer';
    capture = emitsContent
      ? emittingCapture(result, needs, output, at.kind === 'own')
      : silentCapture(needs);
    const onto = at.kind === 'prose' ? output.channel : channel;
    mayShow = at.name === undefined && (onto === 'undecided' || onto === 'prose');
    if (channel !== undefined) shown = 0;
    if (waiting.length === 0) isListed = cursor.peek(1) === '[';
    cursor.cut();
    isAfterLine = false;
    parser.state = json;
  };
  const json: State = () => {
    if (isAfterLine && (cursor.left > 0 || cursor.isEnd)) {
      const ends = endsJson();
      if (ends === 'more') return false;
      isAfterLine = false;
      if (ends) return settleJson();
    }
    if (cursor.left === 0) return cursor.isEnd ? settleJson() : false;
    let stop: string | undefined;
    const room = mayShow ? step - (cursor.latest.length % step) : Infinity;
    cursor.scan((text, from) => {
      const { to, stop: why } = capture.scan.feed(text.slice(0, from + room), from);
      stop = why;
      return to;
    });
    showData(stop);
    if (stop === 'closed' || stop === 'mark') return settleJson();
    isAfterLine = stop === 'line';
    return true;
  };
  /** Shows long JSON as text if it looks like data. If it turns out to be an action, it is taken back. */
  const showData = (stop: string | undefined): void => {
    const { length } = cursor.latest;
    if (!mayShow || stop === 'closed' || stop === 'mark' || length % step !== 0) return;
    if (shown === 0) {
      if (!looksLikeData(length) || !output.mayRetract) return;
      if (parser.context.kind === 'own' && before === 'undecided') output.switchTo('undecided');
      output.beginPreview();
    }
    output.addText(cursor.taken.slice(shown));
    shown = cursor.taken.length;
  };
  const looksLikeData = (length: number): boolean => {
    const { answer, thought, evidence } = capture;
    if (answer !== undefined || thought !== '' || evidence === 'protocol') return false;
    return evidence === 'data' || (parser.context.kind === 'prose' && length >= maxUnclear);
  };
  const endsJson = (): boolean | Undecided => {
    const next = lookAhead(cursor, words);
    return next === 'more' ? 'more' : next.label !== undefined || next.fence !== undefined;
  };
  const settleJson = (): true => {
    // Space at the end of a string that is cut off is a part of it.
    const trimmed = (text: string): string =>
      capture.scan.open === undefined ? text.trim() : text.trimStart();
    const written = trimmed(cursor.latest);
    const text = trimmed(withDoubled(cursor.latest, capture.scan.literals));
    const { kind, name } = parser.context;
    if (name !== undefined) return settle(readArguments(name, text, needs));
    const read = readCaptured(text, needs);
    const { bare } = parser.context;
    if (bare !== undefined && read.calls.length === 0 && read.answer === undefined) {
      result.calls.pop();
      return settle(readArguments(bare, text, needs));
    }
    const reading = text === written ? read : repairedFrom(written, text, read);
    if (kind !== 'prose' || capture.answer !== undefined || reading.answer !== undefined) {
      return settle(reading);
    }
    const isWhole = reading.calls.length === 0 || hasArguments(text);
    const isText = isInline || !isWhole || !counts(reading);
    if (isWhole && !(isText && isQuoted)) waiting.push(reading);
    if (isText) return leaveAsText();
    parser.last = reading;
    isOwnForm ||= isInOwnForm(text);
    parser.state = afterProse;
    return true;
  };

  const settle = (reading: Reading): true => {
    parser.last = reading;
    if (!counts(reading)) return leaveAsText();
    recordWaiting();
    record(reading);
    return true;
  };
  /** Whether JSON has exactly the form of the dialect. Other forms may be examples. */
  const isInOwnForm = (text: string): boolean =>
    dialect.isList
      ? isListed
      : dialect.bareJson !== 'none' &&
        /"tool"\s*:/.test(text) &&
        /"(?:inputs|arguments)"\s*:/.test(text);
  const leaveAsText = (): true => {
    const calls = waiting.flatMap((reading) => reading.calls);
    result.mentionedTool ??= calls.find(({ name, input }) => {
      const tool = needs.tools.get(name);
      return tool !== undefined && fits(input, tool.inputSchema);
    })?.name;
    waiting = [];
    isOwnForm = false;
    if (parser.context.kind === 'own' && before === 'undecided' && shown === 0)
      output.switchTo('undecided');
    parser.addText(cursor.taken.slice(shown));
    shown = 0;
    parser.code = isInFence ? parser.context.fence : undefined;
    isInFence = false;
    parser.toProse();
    return true;
  };
  const recordWaiting = (): void => {
    const readings = waiting;
    waiting = [];
    isOwnForm = false;
    readings.forEach(record);
  };
  /** JSON in prose is an example if the prose continues. */
  const afterProse = afterSpace(
    cursor,
    () => {
      // After an example of an action, the last one may be another.
      if (result.mentionedTool !== undefined) result.conflict ??= actionInText;
      recordWaiting();
      return true;
    },
    (text) => {
      if (/^[\])}]/.test(text)) {
        cursor.take(1);
        return true;
      }
      const rest = text.replace(/^,\s*/, '');
      const mayGrow = !cursor.isEnd && text.length < maxPeek;
      const found = rest === '' ? (mayGrow ? 'more' : undefined) : jsonAt(rest, !mayGrow);
      const next = lookAhead(cursor, words);
      if (next === 'more' || found === 'more') return false;
      if (takeClosing(next)) return true;
      if (next.label !== undefined || next.tag !== undefined) {
        recordWaiting();
        return true;
      }
      if (found === undefined) {
        if (isOwnForm) result.conflict ??= actionInText;
        return leaveAsText();
      }
      cursor.take(text.length - rest.length);
      beginJson({ ...parser.context });
      return true;
    },
  );
  const takeClosing = ({ fence, tag }: Lookahead): boolean => {
    if (fence?.isBare === true) {
      isInFence = false;
      closeFence(parser);
    }
    const closing = fence?.isBare === true ? fence : tag?.type === 'close' ? tag : undefined;
    if (closing !== undefined) cursor.take(closing.length);
    return closing !== undefined;
  };
  const counts = (reading: Reading): boolean => {
    const { calls, answer, problem, isData } = reading;
    const areDeclared = calls.every(({ name }) => needs.tools.has(name));
    switch (parser.context.kind) {
      case 'own':
        return !(before !== undefined && isData === true && isPlainData(reading));
      case 'answer':
        return problem === undefined && calls.length > 0 && areDeclared;
      case 'prose':
        if (capture.answer !== undefined) return true;
        if (isData === true) return false;
        if (problem !== undefined) {
          const isOfTool = problem.tool !== undefined && needs.tools.has(problem.tool);
          return isOfTool || reading.isProtocol === true;
        }
        if (calls.length === 0) return answer !== undefined || reading.isProtocol === true;
        return areDeclared || (dialect.isList && isListed);
    }
  };
  const isPlainData = ({ calls, answer, problem }: Reading): boolean =>
    calls.length === 0 &&
    answer === undefined &&
    capture.thought === '' &&
    capture.answer === undefined &&
    (problem?.tool === undefined || !needs.tools.has(problem.tool));
  const record = ({ calls, repairs, thought, answer, problem }: Reading): void => {
    if (shown > 0) output.dropPreview();
    shown = 0;
    if (output.channel === 'undecided') output.switchTo('thought');
    const emitted = answer === undefined ? capture.answer : capture.emittedOf(answer);
    const isEmitted = emitted !== undefined;
    if (isEmitted && answer !== undefined) output.giveAnswer(answer, emitted);
    if (thought?.startsWith(capture.thought) === true) {
      emitter.write('thinking', thought.slice(capture.thought.length));
    }
    emitter.close();
    if (problem !== undefined) addFault(result, problem, cursor.taken.trim());
    else if (isEmitted && answer === undefined) {
      result.conflict ??= 'The answer is ambiguous.';
    }
    if (calls.length > 0) output.reclassifyAsThought();
    parser.followsEmbedded ||= parser.isEmbedded && calls.length > 0;
    addCalls(result, calls);
    result.repairs.push(...repairs);
    if (!isEmitted && answer !== undefined) output.giveAnswer(answer, undefined);
    capture = silentCapture(needs);
    output.followAction();
    parser.state = trail;
  };

  const trail = afterSpace(
    cursor,
    () => {
      parser.toProse();
      return true;
    },
    (text) => {
      if (/^[}\])]/.test(text)) {
        cursor.take(1);
        return true;
      }
      if (/^(?:`|\*{1,3})$/.test(text) && !cursor.isEnd) return false;
      const [around] = /^(?:`|\*{1,3})(?=\s|$)/.exec(text) ?? [];
      if (around !== undefined) {
        cursor.take(around.length);
        return true;
      }
      const next = lookAhead(cursor, words);
      const given = parser.context.kind === 'own' ? inputLabelAt(text, cursor.isEnd) : undefined;
      if (next === 'more' || given === 'more') return false;
      const isInput = given !== undefined || next.label?.type === 'input';
      if (isInput && cursor.isLineStart) return lateInput(given ?? next.label?.length ?? 0);
      return takeClosing(next) || (hasMark(next) ? endTrail() : afterAction(text));
    },
  );
  const bareName = (): string | undefined => {
    const [toolCall, more] = parser.last.calls;
    const isBare = toolCall !== undefined && more === undefined && isEmpty(toolCall.input);
    return isBare && result.calls.at(-1) === toolCall ? toolCall.name : undefined;
  };
  const lateInput = (length: number): true => {
    const name = bareName();
    if (name === undefined) {
      invalidate(result, parser.last, cursor.taken.trim());
      return endTrail();
    }
    result.calls.pop();
    cursor.take(length);
    parser.context = { kind: parser.context.kind, name };
    parser.state = parser.input;
    return true;
  };
  const afterAction = (text: string): boolean => {
    const { kind, name } = parser.context;
    const bare = text.startsWith('{') ? bareName() : undefined;
    if (bare !== undefined) {
      beginJson({ kind, bare });
      return true;
    }
    if (text.startsWith('{') && name !== undefined) {
      invalidate(result, parser.last, cursor.taken.trim());
    }
    if (text.startsWith(',')) {
      const after = text.slice(1).trimStart();
      if (after === '' && text.length < maxPeek && !cursor.isEnd) return false;
      if (/^[{[]/.test(after)) {
        cursor.take(1);
        return true;
      }
    }
    if (text.startsWith('{') && kind === 'own' && name === undefined) {
      cursor.mark();
      beginJson({ kind: 'own' });
      return true;
    }
    if (!cursor.isLineStart && !text.startsWith('{')) {
      const line = cursor.lengthUntil(/\n/g, 0);
      if (line === cursor.left && !cursor.isEnd && line < 1_000) return false;
      const rest = cursor.peek(Math.min(line, 1_000));
      if (textContinues(rest) || hasLabel(rest, actionWords))
        invalidate(result, parser.last, cursor.taken.trim());
    }
    return endTrail();
  };
  const endTrail = (): true => {
    cursor.isLineStart = true;
    parser.toProse();
    return true;
  };
  return { begin: beginJson, settle };
};

const isEmpty = (input: object): boolean => Object.keys(input).length === 0;

/** Whether a line has a label anywhere, and not only at its start. */
const hasLabel = (line: string, words: LabelWords): boolean =>
  [...line.matchAll(/(?<=[\s*_`("])\S/gu)].some(({ index }) => {
    const found = labelAt(line.slice(index), words, true);
    return found !== undefined && found !== 'more';
  });

const textContinues = (line: string): boolean =>
  /^(?:["'”’:+]|,\s*\S)/.test(line) || (line.includes('"') && /[}\]]\s*$/.test(line));
