import { isRecord, parsedJson } from 'millrace/values';

interface Passage {
  readonly text: string;
  readonly source?: string | undefined;
}

const longestResult = 100_000;
const mostPassages = 50;

/** Reads a result as text: a flat JSON object as `key: value`. */
export const plainText = (result: string): string => {
  const text = result.slice(0, longestResult).trim();
  const parsed = jsonIn(text);
  if (typeof parsed === 'string') return parsed;
  const fields = isRecord(parsed) ? Object.entries(parsed) : [];
  const isFlat =
    !text.includes('\n') && fields.length > 0 && fields.every(([, it]) => typeof it !== 'object');
  return isFlat ? fields.map(([key, value]) => `${key}: ${String(value)}`).join(', ') : text;
};

/** The value that a result gives for further use: the one field of an object, what follows `=`, or all of its text. */
export const valueIn = (result: string): string => {
  const parsed = jsonIn(result);
  const [value, ...others] = isRecord(parsed) ? Object.values(parsed) : [];
  const isOne = others.length === 0 && ['string', 'number', 'boolean'].includes(typeof value);
  const text = isOne ? String(value) : plainText(result).slice(0, 2_000);
  return /^[^\n=<>!]{1,200}= ?([^\n=<>]{1,100})$/u.exec(text)?.[1]?.trim() ?? text;
};

/** Reads a result as passages: from a JSON list, or from blocks of text below lines that name a source. */
export const passagesIn = (result: string): readonly Passage[] => {
  const parsed = jsonIn(result);
  const list: unknown = isRecord(parsed) ? Object.values(parsed).find(Array.isArray) : parsed;
  if (Array.isArray(list)) return list.slice(0, mostPassages).flatMap(passageOf);
  const blocks = result.slice(0, longestResult).split(/\n\s*\n/u);
  return blocks.slice(0, mostPassages * 4).reduce<readonly Passage[]>((before, block) => {
    const [first = '', ...rest] = block.trim().split('\n');
    const source = sourceLine.exec(first.slice(0, 300).trim())?.[1];
    if (source !== undefined) return [...before, { text: rest.join('\n'), source }];
    const last = before.at(-1);
    if (last?.source === undefined) return [...before, { text: block.trim() }];
    return [...before.slice(0, -1), { ...last, text: `${last.text}\n\n${block.trim()}` }];
  }, []);
};

/** `1. docs/flow.md:3 › Flow (relevance 90 %)` */
const sourceLine =
  /^(?:#{1,6} |\[?\d{1,3}[\].)] ?|[-*] |source: ?)?((?:[\w./@-]{1,200}\.\w{1,5}|https?:\/\/[^\s()]{1,200})(?:[#:§ ][^()\n]{0,200}?)?)(?: \([^()\n]{0,40}\))?:?$/iu;

/** The longest string of an object is the passage, the first other one its source. */
const passageOf = (item: unknown): readonly Passage[] => {
  const texts = (isRecord(item) ? Object.values(item) : [item]).filter(
    (it) => typeof it === 'string',
  );
  const [text] = texts.toSorted((a, b) => b.length - a.length);
  return text === undefined ? [] : [{ text, source: texts.find((it) => it !== text) }];
};

/** Whether a search reports that it found nothing, or nothing that fits well. */
export const foundNothing = (result: string): boolean =>
  /^\s*(?:no|none|nothing|not found|0|there (?:are|is) no|\[\]|\{\})(?:\W|$)/iu.test(
    result.slice(0, 200),
  );

const jsonIn = (text: string): unknown =>
  text.length <= longestResult && /^\s*[[{"]/u.test(text) ? parsedJson(text) : undefined;
