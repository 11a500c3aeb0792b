import type { Findings } from './findings.js';
import { createJsonScan, type JsonScan } from '../json-text/json-scan.js';
import { isOneOf, keys } from './keys.js';
import { isCompletion, isNone, type ReadingNeeds } from './read-entry.js';
import type { Speech } from './speech.js';

/** JSON that is being taken in, of which the thought and the answer are said while they arrive. */
export interface Capture {
  readonly scan: JsonScan;
  /** What has been said of it. */
  readonly thought: string;
  readonly answer: string | undefined;
}

/** Takes in JSON of which nothing is said before it is whole. */
export const silentCapture = (): Capture => ({
  scan: createJsonScan(),
  thought: '',
  answer: undefined,
});

/** Takes in the JSON of an action or an answer. In prose nothing is said of it but the answer behind the name that completes the task. */
export const speakingCapture = (
  findings: Findings,
  needs: ReadingNeeds,
  speech: Speech,
  isOwn: boolean,
  /** Called before anything is said. */
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
