/** Where a conversation is cut. */
export interface ConversationSplit {
  /** Where its pages end: the first one begins with it, each other one where the one before ends. */
  readonly pages: readonly number[];
  /** Where begins what may change with what follows: with the last turn but one of the user. */
  readonly open: number;
}

/** Messages that a page has at least. */
const pageLength = 16;

/** Cuts a conversation where turns of the user begin: what stands on one side of a cut says nothing about the other. */
export const splitConversation = (
  length: number,
  begins: (at: number) => boolean,
): ConversationSplit => {
  const beginBefore = (end: number): number => {
    let at = Math.max(0, end - 1);
    while (at > 0 && !begins(at)) at -= 1;
    return at;
  };
  const open = beginBefore(beginBefore(length));
  const pages: number[] = [];
  let at = pageLength;
  while (at <= open) {
    const isEnd = begins(at);
    if (isEnd) pages.push(at);
    at += isEnd ? pageLength : 1;
  }
  return { pages, open };
};
