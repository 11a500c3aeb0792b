import type { Desk, Place, State } from './desk.js';
import { createJsonScan, type JsonScan, scanned, withDoubled } from './json-scan.js';
import { closeFence } from './fence-marks.js';
import type { Findings, Reading } from './findings.js';
import { addFault, amongText, repairedFrom, spoil, unreadable } from './findings.js';
import type { Ahead, Undecided } from './peek.js';
import { ahead, behindSpace, hasMark, inputLabelAt, isOneOf, jsonAt, keys, reach } from './peek.js';
import {
  fits,
  isCompletion,
  isNone,
  parameterOf,
  readEntry,
  type ReadingNeeds,
  readNamed,
  readValue,
  type ToolTable,
} from './read-entry.js';
import type { Channel, Speech } from './voice.js';
import { isRecord, parsedJson } from '../../values/json.js';
import { readJson } from '../../values/read-json.js';

export type JsonStates = ReturnType<typeof createJsonStates>;

export const createJsonStates = (desk: Desk) => {
  const { dialect, words, findings, needs, tape, voice } = desk;
  const { speech } = voice;
  let capture: Capture = silentCapture();
  let isListed = false;
  let isBehindLine = false;
  let isInline = false;
  let isQuoted = false;
  let before: Channel | undefined;
  /** Actions in prose that count if nothing else follows. */
  let waiting: Reading[] = [];
  let isOwnForm = false;
  let isInFence = false;

  const beginJson = (at: Place, channel?: Channel): void => {
    desk.place = at;
    before = channel;
    isQuoted = tape.isInCode && at.fence === undefined;
    isInline = waiting.length === 0 && at.fence === undefined && !tape.isLineStart;
    isInFence = at.fence !== undefined || (waiting.length > 0 && isInFence);
    const speaks =
      (at.kind === 'own' || dialect.isList) && at.name === undefined && at.kind !== 'answer';
    capture = speaks
      ? speakingCapture(findings, needs, speech, at.kind === 'own', voice.thinkBefore)
      : silentCapture();
    if (waiting.length === 0) isListed = tape.peek(1) === '[';
    tape.cut();
    isBehindLine = false;
    desk.state = json;
  };
  const json: State = () => {
    if (isBehindLine && (tape.left > 0 || tape.isEnd)) {
      const ends = endsJson();
      if (ends === 'more') return false;
      isBehindLine = false;
      if (ends) return settleJson();
    }
    if (tape.left === 0) return tape.isEnd ? settleJson() : false;
    let stop: string | undefined;
    tape.scan((text, from) => {
      const { to, stop: why } = capture.scan.feed(text, from);
      stop = why;
      return to;
    });
    if (stop === 'closed' || stop === 'mark') return settleJson();
    isBehindLine = stop === 'line';
    return true;
  };
  const endsJson = (): boolean | Undecided => {
    const next = ahead(tape, words);
    return next === 'more' ? 'more' : next.label !== undefined || next.fence !== undefined;
  };
  const settleJson = (): true => {
    const written = tape.latest;
    const text = withDoubled(written, capture.scan.literals).trim();
    const { kind, name } = desk.place;
    if (name !== undefined) return settle(readArguments(name, text, needs));
    const read = readCaptured(text, needs);
    const { bare } = desk.place;
    if (bare !== undefined && read.asks.length === 0 && read.answer === undefined) {
      findings.asks.pop();
      return settle(readArguments(bare, text, needs));
    }
    const reading = text === written.trim() ? read : repairedFrom(written.trim(), text, read);
    if (kind !== 'prose' || capture.answer !== undefined || reading.answer !== undefined) {
      return settle(reading);
    }
    const isWhole = reading.asks.length === 0 || hasArguments(text);
    const isText = isInline || !isWhole || !counts(reading);
    if (isWhole && !(isText && isQuoted)) waiting.push(reading);
    if (isText) return leaveAsText();
    desk.last = reading;
    isOwnForm ||= isInOwnForm(text);
    desk.state = behindProse;
    return true;
  };

  const settle = (reading: Reading): true => {
    desk.last = reading;
    if (!counts(reading)) return leaveAsText();
    recordWaiting();
    record(reading);
    return true;
  };
  /** Tells whether JSON is just what the dialect asks for. Anybody may write the other forms as examples. */
  const isInOwnForm = (text: string): boolean =>
    dialect.isList
      ? isListed
      : dialect.bareJson !== 'none' &&
        /"tool"\s*:/.test(text) &&
        /"(?:inputs|arguments)"\s*:/.test(text);
  const leaveAsText = (): true => {
    const asks = waiting.flatMap((reading) => reading.asks);
    findings.mention ??= asks.find(({ name, input }) => {
      const tool = needs.tools.get(name);
      return tool !== undefined && fits(input, tool.inputSchema);
    })?.name;
    waiting = [];
    isOwnForm = false;
    if (desk.place.kind === 'own' && before === 'open') voice.turnTo('open');
    voice.literal(tape.taken);
    desk.code = isInFence ? desk.place.fence : undefined;
    isInFence = false;
    desk.toProse();
    return true;
  };
  const recordWaiting = (): void => {
    const readings = waiting;
    waiting = [];
    isOwnForm = false;
    readings.forEach(record);
  };
  /** JSON in prose is an example, and not an action, where the prose goes on. */
  const behindProse = behindSpace(
    tape,
    () => {
      recordWaiting();
      return true;
    },
    (text) => {
      if (/^[\])}]/.test(text)) {
        tape.take(1);
        return true;
      }
      const rest = text.replace(/^,\s*/, '');
      const mayGrow = !tape.isEnd && text.length < reach;
      const found = rest === '' ? (mayGrow ? 'more' : undefined) : jsonAt(rest, !mayGrow);
      const next = ahead(tape, words);
      if (next === 'more' || found === 'more') return false;
      if (takeClosing(next)) return true;
      if (next.label !== undefined || next.tag !== undefined) {
        recordWaiting();
        return true;
      }
      if (found === undefined) {
        if (isOwnForm) findings.conflict ??= amongText;
        return leaveAsText();
      }
      tape.take(text.length - rest.length);
      beginJson({ ...desk.place });
      return true;
    },
  );
  const takeClosing = ({ fence, tag }: Ahead): boolean => {
    if (fence?.isBare === true) {
      isInFence = false;
      closeFence(desk);
    }
    const closing = fence?.isBare === true ? fence : tag?.type === 'close' ? tag : undefined;
    if (closing !== undefined) tape.take(closing.length);
    return closing !== undefined;
  };
  const counts = (reading: Reading): boolean => {
    const { asks, answer, problem, isData } = reading;
    const areDeclared = asks.every(({ name }) => needs.tools.has(name));
    switch (desk.place.kind) {
      case 'own':
        return !(before !== undefined && isData === true && isPlainData(reading));
      case 'answer':
        return problem === undefined && asks.length > 0 && areDeclared;
      case 'prose':
        if (capture.answer !== undefined) return true;
        if (isData === true) return false;
        if (problem !== undefined)
          return problem.tool !== undefined && needs.tools.has(problem.tool);
        if (asks.length === 0) return answer !== undefined;
        return areDeclared || (dialect.isList && isListed);
    }
  };
  const isPlainData = ({ asks, answer, problem }: Reading): boolean =>
    asks.length === 0 &&
    answer === undefined &&
    capture.thought === '' &&
    capture.answer === undefined &&
    (problem?.tool === undefined || !needs.tools.has(problem.tool));
  const record = ({ asks, repairs, thought, answer, problem }: Reading): void => {
    if (voice.channel === 'open') voice.turnTo('thought');
    const isSpoken = capture.answer !== undefined;
    if (isSpoken && answer !== undefined) voice.giveAnswer(answer, capture.answer);
    if (thought?.startsWith(capture.thought) === true) {
      speech.say('thinking', thought.slice(capture.thought.length));
    }
    speech.close();
    if (problem !== undefined) addFault(findings, problem, tape.taken.trim());
    else if (isSpoken && answer === undefined) {
      findings.conflict ??= 'The answer can be read in two ways.';
    }
    findings.asks.push(...asks);
    findings.repairs.push(...repairs);
    if (!isSpoken && answer !== undefined) voice.giveAnswer(answer, undefined);
    capture = silentCapture();
    voice.followAction();
    desk.state = trail;
  };

  const trail = behindSpace(
    tape,
    () => {
      desk.toProse();
      return true;
    },
    (text) => {
      if (/^[}\])]/.test(text)) {
        tape.take(1);
        return true;
      }
      if (/^(?:`|\*{1,3})$/.test(text) && !tape.isEnd) return false;
      const [around] = /^(?:`|\*{1,3})(?=\s|$)/.exec(text) ?? [];
      if (around !== undefined) {
        tape.take(around.length);
        return true;
      }
      const next = ahead(tape, words);
      const given = desk.place.kind === 'own' ? inputLabelAt(text, tape.isEnd) : undefined;
      if (next === 'more' || given === 'more') return false;
      const isInput = given !== undefined || next.label?.type === 'input';
      if (isInput && tape.isLineStart) return lateInput(given ?? next.label?.length ?? 0);
      return takeClosing(next) || (hasMark(next) ? endTrail() : behindAction(text));
    },
  );
  const bareName = (): string | undefined => {
    const [ask, more] = desk.last.asks;
    const isBare = ask !== undefined && more === undefined && isEmpty(ask.input);
    return isBare && findings.asks.at(-1) === ask ? ask.name : undefined;
  };
  const lateInput = (length: number): true => {
    const name = bareName();
    if (name === undefined) {
      spoil(findings, desk.last, tape.taken.trim());
      return endTrail();
    }
    findings.asks.pop();
    tape.take(length);
    desk.place = { kind: desk.place.kind, name };
    desk.state = desk.input;
    return true;
  };
  const behindAction = (text: string): boolean => {
    const { kind, name } = desk.place;
    const bare = text.startsWith('{') ? bareName() : undefined;
    if (bare !== undefined) {
      beginJson({ kind, bare });
      return true;
    }
    if (text.startsWith('{') && name !== undefined) {
      spoil(findings, desk.last, tape.taken.trim());
    }
    if (text.startsWith(',')) {
      const behind = text.slice(1).trimStart();
      if (behind === '' && text.length < reach && !tape.isEnd) return false;
      if (/^[{[]/.test(behind)) {
        tape.take(1);
        return true;
      }
    }
    if (text.startsWith('{') && kind === 'own' && name === undefined) {
      tape.mark();
      beginJson({ kind: 'own' });
      return true;
    }
    if (!tape.isLineStart && !text.startsWith('{')) {
      const line = tape.before(/\n/g, 0);
      if (line === tape.left && !tape.isEnd && line < 1_000) return false;
      if (goesOn(tape.peek(Math.min(line, 1_000)))) spoil(findings, desk.last, tape.taken.trim());
    }
    return endTrail();
  };
  const endTrail = (): true => {
    tape.isLineStart = true;
    desk.toProse();
    return true;
  };
  return { begin: beginJson, settle };
};

const isEmpty = (input: object): boolean => Object.keys(input).length === 0;

const goesOn = (line: string): boolean =>
  /^(?:["'”’:+]|,\s*\S)/.test(line) || (line.includes('"') && /[}\]]\s*$/.test(line));

interface Capture {
  readonly scan: JsonScan;
  readonly thought: string;
  readonly answer: string | undefined;
}

const silentCapture = (): Capture => ({ scan: createJsonScan(), thought: '', answer: undefined });

/** Takes in the JSON of an action or an answer. In prose nothing is said of it but the answer behind the name that completes the task. */
const speakingCapture = (
  findings: Findings,
  needs: ReadingNeeds,
  speech: Speech,
  isOwn: boolean,
  begin: () => void,
): Capture => {
  let thought = '';
  let answer: string | undefined;
  let name: string | undefined;

  const isAnswer = (path: readonly string[]): boolean => {
    const key = path.at(-1) ?? '';
    if (answer !== undefined || findings.answer !== undefined || findings.asks.length > 0)
      return false;
    if (needs.outputSchema !== undefined || !isOneOf(keys.answer, key)) return false;
    if (path.length === 1) return isOwn && name === undefined;
    const isInput = isOneOf(keys.input, path.at(-2) ?? '');
    const isEntry = path.length === 2 || (path.length === 3 && path[0] === '');
    return isInput && isEntry && name !== undefined && isCompletion(name, needs);
  };
  const opens = (path: readonly string[]): ((piece: string) => void) | undefined => {
    const [key = ''] = path;
    if (isOwn && path.length === 1 && isOneOf(keys.thought, key) && thought === '') {
      return (piece) => {
        thought += piece;
        speech.say('thinking', piece);
      };
    }
    if (!isAnswer(path)) return undefined;
    answer = '';
    begin();
    return (piece) => {
      answer = `${answer ?? ''}${piece}`;
      speech.say('text', piece);
    };
  };
  const closes = (path: readonly string[], text: string): void => {
    const isEntry = path.length === 1 || (path.length === 2 && path[0] === '');
    if (isEntry && isOneOf(keys.name, path.at(-1) ?? '') && !isNone(text, needs)) name = text;
  };
  const scan = createJsonScan({ opens, closes });
  return {
    scan,
    get thought() {
      return thought;
    },
    get answer() {
      return answer;
    },
  };
};

const readCaptured = (text: string, needs: ReadingNeeds): Reading => {
  const read = readJson(text);
  if ('problem' in read) {
    return cutAnswer(text, needs) ?? unreadable(read.problem, namedTool(text, needs.tools));
  }
  return checked(readValue(read.value, needs), read);
};

const hasArguments = (text: string): boolean => {
  const read = readJson(text);
  if ('problem' in read) return false;
  return [read.value].flat().every((entry) => {
    if (!isRecord(entry)) return false;
    const nested = keys.name.map((key) => entry[key]).filter(isRecord);
    return [entry, ...nested].some((part) => keys.input.some((key) => Object.hasOwn(part, key)));
  });
};

const readArguments = (name: string, text: string, needs: ReadingNeeds): Reading => {
  const read = readJson(text);
  if ('problem' in read) return unreadable(read.problem, name);
  const { value } = read;
  if (!isRecord(value)) return unreadable('The arguments must be a JSON object.', name);
  return checked(
    repeatsName(name, value, needs) ? readEntry(value, needs) : readNamed(name, value, needs),
    read,
  );
};

const repeatsName = (
  name: string,
  value: Readonly<Record<string, unknown>>,
  { tools }: ReadingNeeds,
): boolean => {
  const key = keys.name.find((it) => Object.hasOwn(value, it) && value[it] === name);
  const isParameter = key !== undefined && parameterOf(tools.get(name), key) !== undefined;
  return key !== undefined && !isParameter && keys.input.some((it) => Object.hasOwn(value, it));
};

const checked = (
  reading: Reading,
  { repair, isClosed }: Exclude<ReturnType<typeof readJson>, { readonly problem: string }>,
): Reading => {
  const bare = reading.asks.find(({ input }) => Object.keys(input).length === 0);
  if (isClosed === true && bare !== undefined) {
    return unreadable('The JSON is not whole: a bracket in it is not closed.', bare.name);
  }
  return repair === undefined ? reading : { ...reading, repairs: [repair, ...reading.repairs] };
};

const cutAnswer = (text: string, needs: ReadingNeeds): Reading | undefined => {
  const { open, missing } = scanned(text);
  const key = open?.path.at(-1);
  if (open?.isKey !== false || key === undefined || !isOneOf(keys.answer, key)) return undefined;
  const after = `${withoutCutEscape(text)}"${missing.toReversed().join('')}`;
  const value = parsedJson(after);
  if (value === undefined) return undefined;
  const reading = readValue(value, needs);
  if (reading.answer === undefined || reading.problem !== undefined) return undefined;
  return reading.asks.length > 0
    ? undefined
    : { ...reading, repairs: [{ before: text, after }, ...reading.repairs] };
};

const withoutCutEscape = (text: string): string =>
  withoutEscape(withoutEscape(text, /\\(?:u[\da-f]{0,3})?$/i), /\\ud[89ab][\da-f]{2}$/i);

const withoutEscape = (text: string, pattern: RegExp): string => {
  const tail = text.slice(-6);
  const begin = pattern.exec(tail)?.index;
  if (begin === undefined) return text;
  let at = text.length - tail.length + begin;
  const end = at;
  while (text.charAt(at - 1) === '\\') at -= 1;
  return (end - at) % 2 === 0 ? text.slice(0, end) : text;
};

const namedTool = (text: string, tools: ToolTable): string | undefined => {
  const pattern =
    /["'“]?(?:tool_name|tool|name|action|function)["'”]?\s{0,9}:\s{0,9}["'“]([^"'“”\n]{1,100})["'”]/g;
  return [...text.slice(0, 10_000).matchAll(pattern)]
    .map(([, name = '']) => name.trim())
    .find((name) => tools.has(name));
};
