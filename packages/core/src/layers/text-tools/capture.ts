import { createJsonScan, type JsonScan } from './json-scan.js';
import type { Emitter } from './output-channel.js';
import type { ParseResult } from './parse-result.js';
import { isCompletion, isNone, mayBeFlag, type ReadingContext, toolNamed } from './read-entry.js';
import { isKnownKey, isOneOf, keys, plainKey } from './scanner.js';

export interface Capture {
  readonly scan: JsonScan;
  readonly thought: string;
  readonly answer: string | undefined;
  /** The kind that the keys and the name so far belong to. */
  readonly evidence: 'protocol' | 'data' | undefined;
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
  };
};

const protocolKeys: readonly string[] = [
  ...['tool', 'tool_name', 'action_input', 'tool_input', 'final_answer', ...keys.around],
  ...keys.thought,
];

/** In prose, other keys are data until a known tool is named. In a place of the protocol, they are not. */
const createEvidence = (needs: ReadingContext, isOwn: boolean) => {
  let found: Capture['evidence'];
  const isEntry = (path: readonly string[]): boolean =>
    path.length === 1 || (path.length === 2 && path[0] === '');
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
  emitter: Emitter,
  isOwn: boolean,
  begin: () => void,
): Capture => {
  let thought = '';
  let answer: string | undefined;
  let hasBegun = false;
  let name: string | undefined;
  const evidence = createEvidence(needs, isOwn);

  const isAnswer = (path: readonly string[]): boolean => {
    const key = path.at(-1) ?? '';
    if (answer !== undefined || result.answer !== undefined || result.calls.length > 0)
      return false;
    if (needs.outputSchema !== undefined) return false;
    const isCompleted = name !== undefined && isCompletion(name, needs);
    // `{"action": "Final Answer", "action_input": "…"}`.
    if (path.length === 1 && isOwn && isCompleted && isOneOf(keys.input, key)) return true;
    if (!isOneOf(keys.answer, key)) return false;
    if (path.length === 1) return isOwn && name === undefined;
    const isInput = isOneOf(keys.input, path.at(-2) ?? '');
    const isEntry = path.length === 2 || (path.length === 3 && path[0] === '');
    return isInput && isEntry && isCompleted;
  };
  const opens = (path: readonly string[]): ((piece: string) => void) | undefined => {
    const [key = ''] = path;
    if (isOwn && path.length === 1 && isOneOf(keys.thought, key) && thought === '') {
      return (piece) => {
        thought += piece;
        emitter.write('thinking', piece);
      };
    }
    if (hasBegun || !isAnswer(path)) return undefined;
    hasBegun = true;
    let held = '';
    return (piece) => {
      if (answer === undefined) {
        held += piece;
        // It may be a word that says that there is an answer, or none.
        if (mayBeFlag(held)) return;
        begin();
      }
      const text = answer === undefined ? held : piece;
      answer = `${answer ?? ''}${text}`;
      emitter.write('text', text);
    };
  };
  const closes = (path: readonly string[], text: string): void => {
    evidence.closes(path, text);
    const isEntry = path.length === 1 || (path.length === 2 && path[0] === '');
    if (isEntry && isOneOf(keys.name, path.at(-1) ?? '') && !isNone(text, needs)) name = text;
  };
  const scan = createJsonScan({ opens, closes, keyed: evidence.keyed });
  return {
    scan,
    get thought() {
      return thought;
    },
    get answer() {
      return answer;
    },
    get evidence() {
      return evidence.found;
    },
  };
};
