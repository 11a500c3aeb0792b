import { isRecord, toExactJson } from 'millrace/values';

/** The text within an answer that is an object with one text, or a list of texts; otherwise, its JSON. */
export const readable = (answer: unknown, depth = 0): string => {
  if (Array.isArray(answer)) {
    const items: readonly unknown[] = answer;
    const texts = items.map((item) => textPart(item));
    return texts.every((text) => text !== undefined) ? texts.join('\n') : textOf(answer);
  }
  if (!isRecord(answer) || depth === 3) return textOf(answer);
  const [key, other] = Object.keys(answer).filter(
    (it) => !(it === 'type' && answer[it] === 'text'),
  );
  return key !== undefined && other === undefined && textKeys.includes(key)
    ? readable(answer[key], depth + 1)
    : textOf(answer);
};

/** Whether `readable` shows a string at this path within an answer as it is, if the answer has nothing else. */
export const isReadable = (path: readonly string[]): boolean => {
  const [key, ...rest] = path;
  if (key === undefined) return true;
  if (key === '') return rest.length === 0 || (rest.length === 1 && rest[0] === 'text');
  return path.length < 4 && textKeys.includes(key) && isReadable(rest);
};

const textPart = (item: unknown): string | undefined => {
  const text = isRecord(item) && item['type'] === 'text' ? item['text'] : item;
  return typeof text === 'string' ? text : undefined;
};

const textKeys: readonly string[] = [
  ...['final_answer', 'answer', 'text', 'content', 'message', 'response', 'result', 'output'],
  'value',
];

export const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : toExactJson(value);
