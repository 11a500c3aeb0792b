/** Markers of the end of a turn: removed from the end, with everything after them. */
const ends = ['<|im_end|>', '<|eot_id|>', '<|end|>', '<end_of_turn>', '</s>'];
const begins = ['<|im_start|>', '<|start_header_id|>', '<start_of_turn>'];
const maxHeld = 120;

const nextTurn =
  /<(?:\|im_end\||\|eot_id\||\|end\||end_of_turn)>\s{0,9}<(?:\|im_start\||\|start_header_id\||start_of_turn)>/;

/** Removes the markers at the end of a turn from the text that a reader gets. */
export const createEnding = () => {
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
    push: (piece: string) => {
      // `<s>` and `</s>` also mean strikethrough.
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

const afterMarks = (text: string): string => {
  const token = ends.find((it) => text.startsWith(it));
  return token === undefined ? text : afterMarks(text.slice(token.length).trimStart());
};

const isWhole = (text: string): boolean => afterMarks(text) === '';

const mayEnd = (text: string): boolean => {
  const rest = afterMarks(text);
  const followsMark = rest.length < text.length;
  return [...ends, ...(followsMark ? begins : [])].some((it) => it.startsWith(rest));
};
