const words = ['the', ' quick', ' brown', ' fox', ' jumps', ' over', ' a', ' lazy', ' dog', '.'];

/** The deltas of an answer: ten words in a cycle. */
export const deltasOf = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => words[index % words.length] ?? '');

/** The whole text of an answer. */
export const answerOf = (count: number): string => deltasOf(count).join('');
