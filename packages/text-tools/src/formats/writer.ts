import type { ModelChunk } from 'millrace';

type Kind = 'text' | 'thinking';

export type Writer = ReturnType<typeof createWriter>;

/** Emits text and thoughts as deltas, without the space around marks. */
export const createWriter = (emit: (chunk: ModelChunk) => void) => {
  let space = '';
  let isCut = false;
  let last: Kind | undefined;
  /** The deltas before the first mark. */
  let spoken: string[] | undefined = [];

  const show = (type: Kind, text: string): void => {
    spoken?.push(text);
    last = type;
    emit({ type, text });
  };
  return {
    /** Whether a mark came last. */
    get isCut() {
      return isCut;
    },
    /** Whether nothing was emitted, and no mark dropped. */
    get isEmpty() {
      return spoken?.length === 0;
    },
    write: (type: Kind, text: string): void => {
      const piece = isCut ? text.trimStart() : text;
      const body = piece.trimEnd();
      if (body === '') {
        space += piece;
        return;
      }
      const lead = isCut && last === type ? '\n\n' : space;
      isCut = false;
      space = piece.slice(body.length);
      show(type, lead + body);
    },
    /** Separates what was written from what follows, at a mark. */
    cut: (): void => {
      isCut = true;
      space = '';
      spoken = undefined;
    },
    /** Takes back all that was emitted before the first mark, and emits it as another kind. */
    retract: (type: Kind, why: string): boolean => {
      const text = spoken?.join('').trim() ?? '';
      if (text === '') return false;
      emit({ type: 'restart', why, isSameRequest: true });
      show(type, text);
      isCut = true;
      space = '';
      spoken = undefined;
      return true;
    },
    end: (): void => {
      if (!isCut && space !== '' && last !== 'thinking') emit({ type: 'text', text: space });
      space = '';
    },
  };
};
