/** Compares text that comes in pieces with another text, and reads each once. The space around both does not count. */
export const createRepetition = (pieces: readonly string[]) => {
  let at = 0;
  let offset = 0;
  let space = '';
  let hasBegun = false;
  let isSame = true;

  const next = (length: number): string => {
    const piece = (pieces[at] ?? '').slice(offset, offset + length);
    offset += piece.length;
    if (offset >= (pieces[at] ?? '').length) [at, offset] = [at + 1, 0];
    return piece;
  };
  const begin = (text: string): string => {
    while (at < pieces.length && (pieces[at] ?? '').trim() === '') at += 1;
    offset = Math.max(0, (pieces[at] ?? '').search(/\S/));
    hasBegun = true;
    return text.trimStart();
  };
  const compare = (text: string): void => {
    let rest = text;
    while (isSame && rest !== '') {
      isSame = at < pieces.length;
      const piece = next(rest.length);
      isSame &&= rest.startsWith(piece);
      rest = rest.slice(piece.length);
    }
  };
  return {
    /** Returns whether the text so far is a start of the other one. */
    push: (text: string): boolean => {
      if (text.trim() === '') {
        space += text;
        return isSame;
      }
      const body = (space + text).trimEnd();
      space = (space + text).slice(body.length);
      compare(hasBegun ? body : begin(body));
      return isSame;
    },
    /** Whether the text so far is all of the other one. */
    get isWhole(): boolean {
      const rest = (pieces[at] ?? '').slice(offset) + (pieces.slice(at + 1).find(hasText) ?? '');
      return isSame && hasBegun && !hasText(rest);
    },
  };
};

const hasText = (text: string): boolean => text.trim() !== '';
