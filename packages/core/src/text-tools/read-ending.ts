/** Takes the marks off the end of a text with which models end their turn. */
export interface Ending {
  /** Gives what can be read already. */
  push(piece: string): string;
  /** Gives what is left and is no mark. */
  end(): string;
  /** Characters that are held back. */
  readonly held: number;
}

const tokens = ['<|im_end|>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>'];
const maxHeld = 120;

/** Begins to look for such marks. */
export const createEnding = (): Ending => {
  let held = '';
  let last = '';
  let hasOpening = false;

  return {
    push: (piece) => {
      // `<s>` and `</s>` also strike text out.
      hasOpening ||= (last + piece).includes('<s>');
      last = (last + piece).slice(-2);
      const text = held + piece;
      let at = text.indexOf('<', Math.max(0, text.length - maxHeld));
      while (at >= 0 && !mayEnd(text.slice(at))) at = text.indexOf('<', at + 1);
      held = at < 0 ? '' : text.slice(at);
      return at < 0 ? text : text.slice(0, at);
    },
    end: () => {
      const isMark = isWhole(held) && !(hasOpening && held.includes('</s>'));
      const rest = isMark ? '' : held;
      held = '';
      return rest;
    },
    get held() {
      return held.length;
    },
  };
};

/** What follows the marks that a text begins with. */
const behindMarks = (text: string): string => {
  const token = tokens.find((it) => text.startsWith(it));
  return token === undefined ? text : behindMarks(text.slice(token.length).trimStart());
};

const isWhole = (text: string): boolean => behindMarks(text) === '';

const mayEnd = (text: string): boolean => {
  const rest = behindMarks(text);
  return tokens.some((it) => it.startsWith(rest));
};
