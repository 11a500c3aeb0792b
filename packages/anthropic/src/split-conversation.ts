/** The indexes at which a conversation is split. */
export interface ConversationSplit {
  /** The ends of its pages, which are consecutive from the start. */
  readonly pages: readonly number[];
  /** The start of the messages that later messages may affect: the second to last user turn. */
  readonly open: number;
}

/** The minimum number of messages of a page. */
const pageLength = 16;

/** Splits a conversation at the start of user turns, so that each part can be serialized independently. */
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
