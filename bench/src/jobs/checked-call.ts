import type { Adapter } from '../adapter.js';
import { answerOf } from '../mock/answer.js';
import { readScript } from '../mock/script.js';

/**
 * Makes a function that calls, and rejects unless the answer is what the script says, to the letter and in as many deltas.
 * `onEach` is told of each of them.
 */
export const checkedCall = (
  adapter: Adapter,
  script: string,
  onEach: () => void = () => undefined,
): (() => Promise<void>) => {
  const answer = expected(script);
  return async () => {
    let deltas = 0;
    const onDelta = (): void => {
      deltas += 1;
      onEach();
    };
    const text = await adapter.call(script, { onDelta });
    if (text !== answer.text) throw new Error(`The answer is another one: '${shortened(text)}'.`);
    if (deltas !== answer.deltas) {
      throw new Error(`The answer came in ${deltas} deltas, not ${answer.deltas}.`);
    }
  };
};

/** What an answer to a script must be. */
export const expected = (script: string): { readonly text: string; readonly deltas: number } => {
  const deltas = readScript(script)?.deltas ?? 0;
  return { text: answerOf(deltas), deltas };
};

const shortened = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
