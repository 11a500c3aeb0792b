import { fenceAt, jsonAt, labelAt, type LabelWords, tagAt } from './peek.js';

/** A thought whose lines hold no marks: one that begins with a mark is quoted, and a tag within a line stands in backticks. */
export const quotedThought = (thought: string, words: LabelWords): string =>
  byLine(thought, (line) => isMark(line, words)).replaceAll(
    /(?<!`)(?:<tool_call>|<function=[^<>\n]{1,100}>|<\|python_tag\|>|\[TOOL_CALLS\])/g,
    (tag) => `\`${tag}\``,
  );

/** A result in which no line begins with a label: it cannot speak for others. */
export const quotedResult = (text: string, words: LabelWords): string =>
  byLine(text, (line) => isLabel(line, words));

const byLine = (text: string, isQuoted: (line: string) => boolean): string =>
  text
    .split('\n')
    .map((line) => (isQuoted(line.trimStart()) ? `> ${line}` : line))
    .join('\n');

const isLabel = (line: string, words: LabelWords): boolean =>
  /^[*_#\s]{0,8}user[*_\s]{0,8}:/i.test(line) || labelAt(line, words, true) !== undefined;

const isMark = (line: string, words: LabelWords): boolean =>
  isLabel(line, words) ||
  tagAt(line, true) !== undefined ||
  fenceAt(line, true) !== undefined ||
  jsonAt(line, true) !== undefined;
