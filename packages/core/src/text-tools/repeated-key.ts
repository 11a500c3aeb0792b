import { parsedJson } from '../json.js';

const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/gu;

interface Level {
  readonly isObject: boolean;
  /** The text of each value by its key. */
  readonly values: Map<string, string>;
  key: string | undefined;
  awaitsKey: boolean;
  begin: number;
}

/** Finds a key that one object of a JSON text has twice, with different values. The text is whole JSON. */
export const repeatedKey = (json: string): string | undefined => {
  const levels: Level[] = [];
  let found: string | undefined;

  const endValue = (end: number): void => {
    const level = levels.at(-1);
    if (level?.key === undefined) return;
    const text = json.slice(level.begin, end).trim();
    const earlier = level.values.get(level.key);
    if (earlier !== undefined && !isSame(earlier, text)) found ??= level.key;
    level.values.set(level.key, text);
    level.key = undefined;
  };
  for (const { 0: text, index } of json.matchAll(token)) {
    const level = levels.at(-1);
    switch (text) {
      case '{':
      case '[':
        levels.push({
          isObject: text === '{',
          values: new Map(),
          key: undefined,
          awaitsKey: text === '{',
          begin: 0,
        });
        break;
      case '}':
      case ']':
        endValue(index);
        levels.pop();
        break;
      case ',':
        endValue(index);
        if (level !== undefined) level.awaitsKey = level.isObject;
        break;
      case ':':
        if (level !== undefined) level.begin = index + 1;
        break;
      default:
        if (level?.awaitsKey === true) {
          level.key = String(parsedJson(text));
          level.awaitsKey = false;
        }
    }
    if (found !== undefined) return found;
  }
  return found;
};

const isSame = (one: string, other: string): boolean =>
  one === other || JSON.stringify(parsedJson(one)) === JSON.stringify(parsedJson(other));
