/** What messages in a row say on a wire. */
export interface Passage {
  /** The role or type of what it begins with; an empty one where it says nothing. */
  readonly first: string;
  /** The role or type of what it ends with. */
  readonly last: string;
  /** The items of a JSON list. */
  readonly json: string;
}

/** Makes a passage of one item. */
export const passageOf = (kind: string, item: unknown): Passage => ({
  first: kind,
  last: kind,
  json: JSON.stringify(item),
});

/** Joins passages. `between` gives what has to stand between two that end and begin so; an empty text is nothing. */
export const joined = (
  passages: readonly Passage[],
  between: (last: string, first: string) => string = () => '',
): Passage => {
  const texts: string[] = [];
  let [first, last] = ['', ''];
  for (const passage of passages) {
    if (passage.json === '') continue;
    const bridge = between(last, passage.first);
    if (bridge !== '') texts.push(bridge);
    texts.push(passage.json);
    first ||= passage.first;
    ({ last } = passage);
  }
  return { first, last, json: texts.join(',') };
};
