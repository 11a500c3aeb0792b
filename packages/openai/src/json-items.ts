/** What messages in a row say on a wire. */
export interface JsonItems {
  /** The role or type of what it begins with; an empty one where it says nothing. */
  readonly first: string;
  /** The role or type of what it ends with. */
  readonly last: string;
  /** The items of a JSON list. */
  readonly json: string;
}

/** Makes a passage of one item. */
export const toJsonItems = (kind: string, item: unknown): JsonItems => ({
  first: kind,
  last: kind,
  json: JSON.stringify(item),
});

/** Joins passages. `between` gives what has to stand between two that end and begin so; an empty text is nothing. */
export const joinItems = (
  passages: readonly JsonItems[],
  between: (last: string, first: string) => string = () => '',
): JsonItems => {
  const texts: string[] = [];
  let [first, last] = ['', ''];
  for (const passage of passages) {
    if (passage.json === '') continue;
    const separator = between(last, passage.first);
    if (separator !== '') texts.push(separator);
    texts.push(passage.json);
    first ||= passage.first;
    ({ last } = passage);
  }
  return { first, last, json: texts.join(',') };
};
