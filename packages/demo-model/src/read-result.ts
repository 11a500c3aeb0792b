/** Text of a result that is looked at. */
const longestResult = 100_000;

/** A passage that a tool found, and where. */
export interface Passage {
  readonly text: string;
  readonly source?: string;
  /** How well the tool says that it fits, from 0 to 1. */
  readonly relevance?: number;
}

/** The one short value that a result gives, if it gives one: a calculator's number, a clock's time. */
export const valueOf = (result: string): string | undefined => {
  const parsed = parse(result);
  // As it was written: a number of JavaScript's would round a long one.
  if (typeof parsed === 'number') return result.trim();
  const value = scalarText(parsed) ?? (isRecord(parsed) ? valueOfRecord(parsed) : undefined);
  if (value !== undefined) return value;
  if (parsed !== undefined) return undefined;
  const text = result.slice(0, longestValue + 1).trim();
  if (text === '' || text.length > longestValue || text.includes('\n')) return undefined;
  return /[^=<>!]=\s*(?<value>[^=<>]+)$/u.exec(text)?.groups?.['value']?.trim() ?? text;
};

const longestValue = 200;

const valueNames = ['result', 'value', 'answer', 'output', 'time', 'text'];

const valueOfRecord = (record: Fields): string | undefined => {
  const named = valueNames
    .filter((name) => Object.hasOwn(record, name))
    .map((name) => scalarText(record[name]));
  const all = Object.values(record);
  return (
    named.find((it) => it !== undefined) ?? (all.length === 1 ? scalarText(all[0]) : undefined)
  );
};

/** Reads a result as passages: an array of objects, text in blocks, or one text. */
export const passagesOf = (result: string): readonly Passage[] => {
  const parsed = parse(result);
  const list = Array.isArray(parsed) ? parsed : isRecord(parsed) ? listIn(parsed) : undefined;
  if (list !== undefined) return list.slice(0, mostPassages).flatMap(passageOf);
  if (parsed !== undefined) return [];
  return blocksOf(result.slice(0, longestResult));
};

const mostPassages = 50;

const listIn = (record: Fields): readonly unknown[] | undefined =>
  Object.values(record).find((value) => Array.isArray(value));

const sourceNames = [
  'path',
  'file',
  'source',
  'url',
  'uri',
  'link',
  'title',
  'heading',
  'section',
  'name',
  'id',
];
const textNames = [
  'text',
  'snippet',
  'passage',
  'content',
  'excerpt',
  'body',
  'summary',
  'description',
];

const passageOf = (item: unknown): readonly Passage[] => {
  if (typeof item === 'string') return [{ text: item }];
  if (!isRecord(item)) return [];
  const named = textNames.map((name) => own(item, name)).find((it) => typeof it === 'string');
  const longest = Object.values(item)
    .filter((it) => typeof it === 'string')
    .toSorted((a, b) => b.length - a.length)[0];
  const text = named ?? longest;
  if (text === undefined) return [];
  const sources = sourceNames
    .map((name) => own(item, name))
    .filter((it) => it !== undefined && it !== text);
  const [source] = sources;
  const relevance = [item['relevance'], item['score']].find((it) => typeof it === 'number');
  return [withoutGaps({ text, source, relevance: isShare(relevance) ? relevance : undefined })];
};

const isShare = (value: unknown): boolean => typeof value === 'number' && value >= 0 && value <= 1;

const withoutGaps = ({ text, source, relevance }: Found): Passage => ({
  text,
  ...(source === undefined ? {} : { source }),
  ...(relevance === undefined ? {} : { relevance }),
});

interface Found {
  readonly text: string;
  readonly source: string | undefined;
  readonly relevance: number | undefined;
}

const own = (record: Fields, name: string): string | undefined => {
  const value = Object.hasOwn(record, name) ? record[name] : undefined;
  return typeof value === 'string' ? value : undefined;
};

/** A line that says where the text below it stands: a path or an address, perhaps with a heading. */
const sourceLine =
  /^(?:#{1,6} |\[?\d{1,3}[\].):]+ ?|[-*] |source: ?|file: ?)*(?<source>(?:[\w./@-]+\.\w{1,5}(?:[#:§]\S*)?|https?:\/\/\S+)[^\n]{0,160})$/iu;

const sourceIn = (line: string): string | undefined =>
  sourceLine
    .exec(line.slice(0, 300).trim())
    ?.groups?.['source']?.replace(/\s*\((?:relevance|score)[^)]*\)\s*$/iu, '')
    .replace(/[:\s]+$/u, '');

/** `(relevance 88 %)`, `(score: 0.4)` */
const relevanceIn = (line: string): number | undefined => {
  const { value, percent } =
    /\((?:relevance|score)[ :=]*(?<value>\d{1,3}(?:\.\d{1,9})?)(?<percent> ?%)?\)\s*$/iu.exec(
      line.slice(0, 300),
    )?.groups ?? {};
  if (value === undefined) return undefined;
  const share = percent === undefined ? Number(value) : Number(value) / 100;
  return isShare(share) ? share : undefined;
};

/** Takes text apart where a line names a source; without any, at blank lines. */
const blocksOf = (text: string): readonly Passage[] => {
  const found: Passage[] = [];
  for (const block of text.split(/\n\s*\n|\n-{3,}\n/u).slice(0, mostPassages * 4)) {
    const [first = '', ...rest] = block.trim().split('\n');
    const source = sourceIn(first);
    const last = found.at(-1);
    if (source !== undefined)
      found.push(withoutGaps({ text: rest.join('\n'), source, relevance: relevanceIn(first) }));
    else if (last?.source === undefined) found.push({ text: block.trim() });
    else found.splice(-1, 1, { ...last, text: `${last.text}\n\n${block.trim()}`.trim() });
  }
  const hasSources = found.some(({ source }) => source !== undefined);
  return found.filter(
    (passage) => passage.text !== '' && (passage.source !== undefined || !hasSources),
  );
};

/** Tells whether a search says of itself that it found nothing, or nothing that fits well. */
export const foundNothing = (result: string): boolean =>
  /^\s*(?:no|none|nothing|not found|found nothing|0|there (?:are|is) no|could(?: not|n't) find|\[\]|\{\})(?:\W|$)/iu.test(
    result.slice(0, 200),
  );

/** Writes a result as plain text: JSON objects of few fields as `key: value`. */
export const plainText = (result: string): string => {
  const parsed = parse(result);
  if (parsed === undefined) return result.trim();
  const value = scalarText(parsed);
  if (value !== undefined) return value;
  const fields = isRecord(parsed) ? Object.entries(parsed) : [];
  const isFlat =
    !result.trim().includes('\n') &&
    fields.length > 0 &&
    fields.length <= 12 &&
    fields.every(([, it]) => scalarText(it) !== undefined);
  return isFlat
    ? fields.map(([key, it]) => `${key}: ${scalarText(it) ?? ''}`).join(', ')
    : result.trim();
};

const parse = (result: string): unknown => {
  const text = result.trim();
  if (text.length > longestResult || !/^(?:[[{"]|-?\d|true$|false$)/u.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const scalarText = (value: unknown): string | undefined =>
  ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;

type Fields = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
