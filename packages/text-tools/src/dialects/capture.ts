import { createJsonScan, type JsonScan } from '../json-scan.js';
import type { OutputChannel } from './output-channel.js';
import type { ParseResult } from './parse-result.js';
import { isCompletion, isNone, mayBeFlag, type ReadingContext, toolNamed } from './read-entry.js';
import { isReadable } from './readable-answer.js';
import { isKnownKey, isOneOf, keys, plainKey } from './scanner.js';

export interface Capture {
  readonly scan: JsonScan;
  readonly thought: string;
  readonly answer: string | undefined;
  /** The kind that the keys and the name so far belong to. */
  readonly evidence: 'protocol' | 'data' | undefined;
  /** The part of the answer that was emitted. What is no part of it is taken back, if it can be. */
  readonly emittedOf: (whole: string) => string | undefined;
}

export const silentCapture = (needs: ReadingContext): Capture => {
  const evidence = createEvidence(needs, false);
  return {
    scan: createJsonScan({ ...evidence, opens: () => undefined }),
    thought: '',
    answer: undefined,
    get evidence() {
      return evidence.found;
    },
    emittedOf: () => undefined,
  };
};

const protocolKeys: readonly string[] = [
  ...['tool', 'tool_name', 'action_input', 'tool_input', 'final_answer', ...keys.around],
  ...keys.thought,
];

/** Whether a path is that of a key of an entry, alone or in a list. */
const isEntry = (path: readonly string[]): boolean =>
  path.length === 1 || (path.length === 2 && path[0] === '');

/** In prose, other keys are data until a known tool is named. In a place of the protocol, they are not. */
const createEvidence = (needs: ReadingContext, isOwn: boolean) => {
  let found: Capture['evidence'];
  return {
    keyed: (path: readonly string[]): void => {
      const key = plainKey(path.at(-1) ?? '');
      if (!isEntry(path)) return;
      if (isOwn && isOneOf(protocolKeys, key)) found = 'protocol';
      else if (!isKnownKey(key)) found ??= 'data';
    },
    closes: (path: readonly string[], text: string): void => {
      if (!isEntry(path) || !isOneOf(keys.name, path.at(-1) ?? '')) return;
      const isCall =
        needs.tools.has(toolNamed(text, needs.tools)) ||
        isCompletion(text, needs) ||
        isNone(text, needs);
      if (isCall) found = 'protocol';
      else if (!isOwn) found ??= 'data';
    },
    get found() {
      return found;
    },
  };
};

/** Captures the JSON of an action or an answer. In prose, only emits the answer of the completion entry. */
export const emittingCapture = (
  result: ParseResult,
  needs: ReadingContext,
  output: OutputChannel,
  isOwn: boolean,
): Capture => {
  const answer = createAnswer(output);
  let thought = '';
  /** The path of the answer, if it has begun, or of the strings of a list that are one. */
  let begun: string | undefined;
  /** Whether the answer is within a list or an object. */
  let isPart = false;
  let name: string | undefined;
  const evidence = createEvidence(needs, isOwn);

  /** An answer may be a string, or have only one, or be a list of some. Otherwise, what was emitted is taken back. */
  const isAnswer = (path: readonly string[]): boolean => {
    if (result.answer !== undefined || result.calls.length > 0) return false;
    if (needs.outputSchema !== undefined) return false;
    const at = { name, isOwn, needs };
    const end = path.findIndex((_, index) => isAnswerAt(path.slice(0, index + 1), at)) + 1;
    isPart = end < path.length;
    return end > 0 && isReadable(path.slice(end)) && (!isPart || output.mayRetract);
  };
  const opens = (path: readonly string[]): ((piece: string) => void) | undefined => {
    if (isOwn && path.length === 1 && isOneOf(keys.thought, path[0] ?? '') && thought === '') {
      return (piece) => {
        thought += piece;
        output.emitter.write('thinking', piece);
      };
    }
    const at = path.join('\n');
    if (begun === undefined ? !isAnswer(path) : begun !== at || !path.includes('', 1))
      return undefined;
    if (begun !== undefined) answer.write('\n');
    begun = at;
    return answer.write;
  };
  const closes = (path: readonly string[], text: string): void => {
    evidence.closes(path, text);
    if (isEntry(path) && isOneOf(keys.name, path.at(-1) ?? '') && !isNone(text, needs)) name = text;
  };
  return {
    scan: createJsonScan({ opens, closes, keyed: evidence.keyed }),
    get thought() {
      return thought;
    },
    get answer() {
      return answer.text;
    },
    get evidence() {
      return evidence.found;
    },
    emittedOf: (whole) => {
      if (!isPart || whole.startsWith(answer.text ?? '') || !output.mayRetract) return answer.text;
      answer.takeBack();
      return undefined;
    },
  };
};

interface EntrySoFar {
  readonly name: string | undefined;
  readonly isOwn: boolean;
  readonly needs: ReadingContext;
}

/** Whether the value at a path is the answer, by its keys and by the name in its entry. */
const isAnswerAt = (path: readonly string[], { name, isOwn, needs }: EntrySoFar): boolean => {
  const key = path.at(-1) ?? '';
  const isCompleted = name !== undefined && isCompletion(name, needs);
  // `{"action": "Final Answer", "action_input": "…"}`.
  if (path.length === 1 && isOwn && isCompleted && isOneOf(keys.input, key)) return true;
  if (!isOneOf(keys.answer, key)) return false;
  if (path.length === 1) return isOwn && name === undefined;
  const entry = path.slice(0, -1);
  return isEntry(entry) && isOneOf(keys.input, entry.at(-1) ?? '') && isCompleted;
};

/** Emits an answer as it arrives. */
const createAnswer = ({ emitter, reclassifyAsThought }: OutputChannel) => {
  let text: string | undefined;
  let held = '';
  /** How much was emitted before. */
  let from = 0;
  return {
    get text() {
      return text;
    },
    write: (piece: string): void => {
      held += piece;
      // It may be a word that says that there is an answer, or none.
      if (text === undefined && mayBeFlag(held)) return;
      if (text === undefined) {
        reclassifyAsThought();
        from = emitter.count;
      }
      text = `${text ?? ''}${held}`;
      emitter.write('text', held);
      held = '';
    },
    takeBack: (): void => {
      emitter.takeBack(from);
    },
  };
};
