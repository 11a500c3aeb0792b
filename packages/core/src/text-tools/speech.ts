import type { ModelChunk } from '../model.js';

/** Says thoughts and texts in segments, each without white space at its ends. */
export interface Speech {
  say(type: 'text' | 'thinking', text: string): void;
  /** Ends a segment. The next one of the same kind is set apart. */
  close(): void;
}

/** Makes a speech of which each piece is emitted as it comes. */
export const createSpeech = (emit: (chunk: ModelChunk) => void): Speech => {
  let current: 'text' | 'thinking' | undefined;
  let last: 'text' | 'thinking' | undefined;
  let space = '';
  let isFresh = true;

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
      emit({ type, text: `${gap}${space}${body}` });
      space = begin.slice(body.length);
      isFresh = false;
      last = type;
    },
    close,
  };
};
