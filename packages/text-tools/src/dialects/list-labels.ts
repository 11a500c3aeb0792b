import { labelAt, type LabelWords, maxPeek } from './scanner.js';

export interface ListLabelsInit {
  readonly words: LabelWords;
  /** Takes the text without the marks. */
  readonly push: (text: string) => void;
}

/** Drops the marks of a list before labels, as in `- Thought: …` and `2. Action: …`, if the reply starts with such a line. */
export const createListLabels = ({ words, push }: ListLabelsInit) => {
  let held = '';
  let state: 'start' | 'line' | 'rest' | 'through' = 'start';

  /** The length of the marks here; `more` if there may be some. */
  const marksHere = (isEnd: boolean): number | 'more' => {
    const mayGrow = !isEnd && held.length < maxPeek;
    if (mayGrow && /^\s*(?:[-*+•]|\d{1,2}[.)]?)?[ \t]*$/.test(held)) return 'more';
    const [marks = ''] = listMark.exec(held) ?? [];
    if (marks === '') return 0;
    const label = labelAt(held.slice(marks.length), words, isEnd);
    if (label === 'more') return 'more';
    return label === undefined ? 0 : marks.length;
  };
  const pass = (length: number): void => {
    const text = held.slice(0, length);
    held = held.slice(length);
    if (text !== '') push(text);
  };
  const step = (isEnd: boolean): void => {
    while (held !== '') {
      if (state === 'through') pass(held.length);
      else if (state === 'rest') {
        const end = held.indexOf('\n') + 1;
        if (end > 0) state = 'line';
        pass(end > 0 ? end : held.length);
      } else {
        const marks = marksHere(isEnd);
        if (marks === 'more') return;
        held = held.slice(marks);
        state = state === 'start' && marks === 0 ? 'through' : 'rest';
      }
    }
  };
  return {
    push: (text: string): void => {
      held += text;
      step(false);
    },
    end: (): void => step(true),
    get held() {
      return held.length;
    },
  };
};

const listMark = /^\s*(?:[-*+•]|\d{1,2}[.)])[ \t]+/;
