/** Takes the marks off the end of a text with which models end their turn, and what they write behind them. */
export interface Ending {
  /** Gives what can be read already. */
  push(piece: string): string;
  /** Gives what is left and is no mark. */
  end(): string;
  /** Characters that are held back. */
  readonly held: number;
  /** The model has ended its turn, and begun one of somebody else. */
  readonly isOver: boolean;
}

const ends = ['<|im_end|>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>'];
const begins = ['<|im_start|>', '<|start_header_id|>', '<start_of_turn>'];
const maxHeld = 120;

const nextTurn =
  /<(?:\|im_end\||\|eot_id\||\|end\||end_of_turn)>\s{0,9}<(?:\|im_start\||\|start_header_id\||start_of_turn)>/;

/** Begins to look for such marks. */
export const createEnding = (): Ending => {
  let held = '';
  let last = '';
  let hasOpening = false;
  let isOver = false;

  const keep = (text: string): string => {
    let at = text.indexOf('<', Math.max(0, text.length - maxHeld));
    while (at >= 0 && !mayEnd(text.slice(at))) at = text.indexOf('<', at + 1);
    held = at < 0 ? '' : text.slice(at);
    return at < 0 ? text : text.slice(0, at);
  };
  return {
    push: (piece) => {
      // `<s>` and `</s>` also strike text out.
      hasOpening ||= (last + piece).includes('<s>');
      last = (last + piece).slice(-2);
      const text = held + piece;
      const turn = nextTurn.exec(text)?.index;
      if (turn === undefined) return keep(text);
      isOver = true;
      held = '';
      return text.slice(0, turn);
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
    get isOver() {
      return isOver;
    },
  };
};

/** What follows the marks that a text begins with. */
const behindMarks = (text: string): string => {
  const token = ends.find((it) => text.startsWith(it));
  return token === undefined ? text : behindMarks(text.slice(token.length).trimStart());
};

const isWhole = (text: string): boolean => behindMarks(text) === '';

const mayEnd = (text: string): boolean => {
  const rest = behindMarks(text);
  const isBehind = rest.length < text.length;
  return [...ends, ...(isBehind ? begins : [])].some((it) => it.startsWith(rest));
};
