import { isExpression } from './arithmetic/expression.js';
import { isTelling } from './shape.js';
import { wordsOf } from './words.js';

/** The keywords of a JSON Schema. */
export type Rules = Readonly<Record<string, unknown>>;

/** What a text must hold to fill a parameter. */
export type SlotKind =
  | 'expression'
  | 'path'
  | 'place'
  | 'url'
  | 'email'
  | 'date'
  | 'choice'
  | 'number'
  | 'flag'
  | 'query'
  | 'prose'
  | 'shaped'
  | 'name'
  | 'opaque';

/** What a declaration says of a parameter. */
export interface About {
  readonly name: string;
  readonly description: string;
  readonly examples: readonly string[];
  readonly pattern: RegExp | undefined;
}

/** Tells what fills a parameter: by its type and format, its name, its examples, then its description. */
export const kindOf = (rules: Rules, about: About): SlotKind => {
  if (Array.isArray(rules['enum'])) return 'choice';
  switch (typeOf(rules)) {
    case 'boolean':
      return 'flag';
    case 'number':
    case 'integer':
      return 'number';
    case 'object':
    case 'array':
    case 'null':
      return 'opaque';
    default:
      return (
        byFormat(rules['format']) ??
        byWords(wordsOf(about.name), nameKinds) ??
        byExamples(about) ??
        byWords(wordsOf(about.description), descriptionKinds) ??
        'name'
      );
  }
};

const formats = new Map<unknown, SlotKind>([
  ['uri', 'url'],
  ['url', 'url'],
  ['email', 'email'],
  ['date', 'date'],
  ['date-time', 'date'],
]);

const byFormat = (format: unknown): SlotKind | undefined => formats.get(format);

type WordKinds = readonly (readonly [SlotKind, ReadonlySet<string>])[];

const nameKinds: WordKinds = [
  ['expression', new Set(['expression', 'formula', 'equation', 'calculation', 'arithmetic'])],
  ['path', new Set(['path', 'file', 'filename', 'filepath', 'directory', 'folder'])],
  ['place', new Set(['timezone', 'zone', 'tz', 'place', 'city', 'location', 'town', 'country'])],
  ['url', new Set(['url', 'uri', 'link', 'website'])],
  ['email', new Set(['email', 'mail'])],
  ['date', new Set(['date', 'day'])],
  ['query', new Set(['query', 'question', 'search', 'q', 'keywords', 'keyword', 'terms', 'topic'])],
  ['prose', new Set(['text', 'message', 'content', 'body', 'prompt', 'note', 'sentence', 'fact'])],
];

const descriptionKinds: WordKinds = [
  ['expression', new Set(['expression', 'formula', 'equation', 'calculation', 'arithmetic'])],
  ['place', new Set(['timezone', 'iana', 'zone', 'city', 'place', 'location', 'country'])],
  ['url', new Set(['url', 'uri'])],
  ['query', new Set(['query', 'question', 'search', 'keywords'])],
  ['path', new Set(['path', 'file', 'filename'])],
  ['date', new Set(['date'])],
  ['prose', new Set(['text', 'message', 'sentence'])],
];

const byWords = (words: readonly string[], kinds: WordKinds): SlotKind | undefined =>
  kinds.find(([, names]) => words.some((word) => names.has(word)))?.[0];

const zoneExample = /^[A-Z][A-Za-z]+\/[A-Z][A-Za-z_]+(?:\/[A-Z][A-Za-z_]+)?$/u;
const pathExample = /^(?:\.{0,2}\/)?[\w@-]+(?:[./][\w@-]+)*\.[a-z]{1,5}$/u;

const byExamples = ({ examples, pattern }: About): SlotKind | undefined => {
  const all = (test: RegExp): boolean =>
    examples.length > 0 && examples.every((it) => test.test(it));
  if (examples.some(isExpression)) return 'expression';
  if (examples.some((it) => zoneExample.test(it))) return 'place';
  if (all(/^https?:/u)) return 'url';
  if (all(/^[^@\s]+@[^@\s]+$/u)) return 'email';
  if (all(pathExample)) return 'path';
  return isTelling(examples, pattern) ? 'shaped' : undefined;
};

/** The type that a schema asks for, beside null. */
export const typeOf = (rules: Rules): unknown => {
  const { type } = rules;
  if (Array.isArray(type)) return type.find((it) => it !== 'null');
  if (type === undefined && 'const' in rules) return typeof rules['const'];
  return type ?? (isRecord(rules['properties']) ? 'object' : 'string');
};

/** Tells whether a value is an object with keys. */
export const isRecord = (value: unknown): value is Rules =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
