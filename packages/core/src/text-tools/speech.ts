import type { ModelChunk } from '../model.js';

/** Says thoughts and texts in segments, each without white space at its ends. */
export interface Speech {
  say(type: 'text' | 'thinking', text: string): void;
  /** Ends a segment. The next one of the same kind is set apart. */
  close(): void;
  /** Takes back all that has been said, and says it as thoughts. Nothing, where it has been thoughts only, or has been taken back too often. */
  retract(): void;
}

/** Each one says all that has been said again. */
const maxRetractions = 3;

export const createSpeech = (emit: (chunk: ModelChunk) => void): Speech => {
  let current: 'text' | 'thinking' | undefined;
  let last: 'text' | 'thinking' | undefined;
  let space = '';
  let isFresh = true;
  let hasText = false;
  let retractions = 0;
  let said: { readonly type: 'text' | 'thinking'; readonly text: string }[] = [];

  const close = (): void => {
    current = undefined;
    space = '';
    isFresh = true;
  };
  return {
    say: (type, text) => {
      if (type !== current) close();
      current = type;
      const begin = isFresh ? text.trimStart() : text;
      if (begin === '') return;
      const body = begin.trimEnd();
      if (body === '') {
        space += begin;
        return;
      }
      const gap = isFresh && last === type ? '\n\n' : '';
      const chunk = { type, text: `${gap}${space}${body}` };
      said.push(chunk);
      hasText ||= type === 'text';
      emit(chunk);
      space = begin.slice(body.length);
      isFresh = false;
      last = type;
    },
    close,
    retract: () => {
      if (!hasText || retractions === maxRetractions) return;
      retractions += 1;
      hasText = false;
      emit({ type: 'restart', why: 'What the model wrote before its answer was a thought.' });
      const thought = said.map(({ type, text }, index) => {
        const before = said[index - 1]?.type ?? type;
        return before === type ? text : `\n\n${text}`;
      });
      said = [{ type: 'thinking', text: thought.join('') }];
      said.forEach(emit);
      close();
      last = 'thinking';
    },
  };
};
