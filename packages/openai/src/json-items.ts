import { toExactJson } from 'millrace/values';

/** Consecutive messages, serialized as items of a JSON array. */
export interface JsonItems {
  /** The role or type of the first item; `''` if there are no items. */
  readonly first: string;
  /** The role or type of the last item. */
  readonly last: string;
  /** The items, separated by commas. */
  readonly json: string;
}

export const toJsonItems = (kind: string, item: unknown): JsonItems => ({
  first: kind,
  last: kind,
  json: toExactJson(item),
});

/** Concatenates items. `between` returns the item to insert between a last and a first item, or `''`. */
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
