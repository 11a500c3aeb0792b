import { isRecord } from '../is-record.js';

/** What is below a key, if the value has it. */
export const at = (value: unknown, key: string): unknown =>
  isRecord(value) ? value[key] : undefined;

/** The text below a key; empty where there is none. */
export const textAt = (value: unknown, key: string): string => {
  const found = at(value, key);
  return typeof found === 'string' ? found : '';
};

/** The list below a key; empty where there is none. */
export const listAt = (value: unknown, key: string): readonly unknown[] => {
  const found: unknown = at(value, key);
  return Array.isArray(found) ? found : [];
};

/** The text of what is a text, or a list of blocks with texts. */
export const plainText = (content: unknown): string => {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((block) => textAt(block, 'text')).join('') : '';
};
