import { characterEnd, characterStart } from '../interceptors/surrogates.js';

/** Leaves out the middle of a text until what counts it finds it short enough, with a marker that names how much is missing. */
export const cutMiddle = (
  text: string,
  tokens: number,
  most: number,
  count: (text: string) => number,
): string => {
  const room = Math.max(0, most - count(withoutMiddle(text, 0)));
  let kept = Math.floor((text.length * room) / tokens);
  let cut = withoutMiddle(text, kept);
  // What is left may be denser than the whole.
  while (kept > 0 && count(cut) > most) {
    kept = Math.floor(kept * 0.9);
    cut = withoutMiddle(text, kept);
  }
  return cut;
};

const withoutMiddle = (text: string, kept: number): string => {
  const head = characterStart(text, Math.ceil(kept / 2));
  const tail = characterEnd(text, text.length - Math.floor(kept / 2));
  return `${text.slice(0, head)}\n[… ${tail - head} of ${text.length} characters omitted here …]\n${text.slice(tail)}`;
};
