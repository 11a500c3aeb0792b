/** A stretch of a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** A word of a text, or whatever stands between two spaces, without the punctuation around it. */
export interface Token extends Span {
  readonly text: string;
}

/** Reads a text as tokens, in order. */
export const tokensOf = (text: string): readonly Token[] =>
  [...text.matchAll(/\S+/gu)]
    .map(({ 0: chunk, index }) => trimmed(chunk, index))
    .filter((token) => token.text !== '');

const opening = new Set('([{<"\'`“‘«¿¡*_');
const closing = new Set(')]}>"\'`”’»?!.,;:…*_');

const trimmed = (chunk: string, at: number): Token => {
  let start = 0;
  let end = chunk.length;
  while (start < end && opening.has(chunk.charAt(start))) start += 1;
  while (end > start && closing.has(chunk.charAt(end - 1))) end -= 1;
  const text = chunk.slice(start, end).replace(/['’]s$/u, '');
  return { text, start: at + start, end: at + start + text.length };
};

/** The tokens that carry meaning: those with a letter or a digit that are no stop words. */
export const contentTokens = (text: string): readonly Token[] =>
  tokensOf(text).filter((token) => /[\p{L}\p{N}]/u.test(token.text) && !isStopWord(token.text));

/** Tells whether a word says nothing about the subject. */
export const isStopWord = (word: string): boolean => stopWords.has(plain(word));

/** The form of a word that spelling variants and inflections share: `licences` and `license` both give `licens`. */
export const stemOf = (word: string): string => {
  const lower = plain(word);
  return /^[a-z]{4,40}$/u.test(lower) ? withoutEnding(american(lower)) : lower;
};

/** The stems of a text's meaningful words, with names such as `readFile` and `read_file` taken apart. */
export const stemsOf = (text: string): readonly string[] =>
  wordsOf(text)
    .filter((word) => !isStopWord(word))
    .map(stemOf);

/** The words of a name or a text in lower case, with names such as `readFile` taken apart. */
export const wordsOf = (text: string): readonly string[] =>
  text
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2')
    .split(/[^\p{L}\p{N}'’]+/u)
    .map(plain)
    .filter((word) => word !== '');

/** Tells whether two stretches share a character. */
export const overlaps = (a: Span, b: Span): boolean => a.start < b.end && b.start < a.end;

/** The group of words of like meaning that a stem belongs to, or the stem itself. */
export const senseOf = (stem: string): string => senses.get(stem) ?? stem;

const plain = (word: string): string =>
  word
    .toLowerCase()
    .replaceAll('’', "'")
    .replace(/^'+|'+$|'s$/gu, '');

const american = (word: string): string =>
  word
    .replace(/ence(?=s?$)/u, 'ense')
    .replace(/our(?=s?$)/u, 'or')
    .replace(/tre(?=s?$)/u, 'ter')
    .replace(/is(?=e[sd]?$|ing$|ation$)/u, 'iz');

const endings = [
  'ations',
  'ation',
  'ators',
  'ator',
  'ating',
  'ated',
  'ates',
  'ings',
  'ing',
  'ers',
  'ate',
  'ors',
  'ies',
  'er',
  'or',
  'ed',
  'es',
  'ly',
  's',
  'e',
  'y',
];

const withoutEnding = (word: string): string => {
  const ending = endings.find((it) => word.endsWith(it) && word.length - it.length >= 3);
  if (ending === undefined || word.endsWith('ss')) return word;
  return word.slice(0, -ending.length).replace(/([b-df-hj-kmnp-rtv-z])\1$/u, '$1');
};

const stopWords = new Set(
  `a an the this that these those it its i me my mine you your yours we us our they them their he him
  his she her is isn't are aren't was were be been being am do does don't doesn't did doing done have
  has had having can can't cannot could will would shall should may might must what what's which who
  whom whose when where why how i'm it's that's there's let's i'd i've in on at of to from for with by
  into onto about as and or but if than then so not no yes there here now right just also too very
  please kindly hey hi hello ok okay well thanks thank tell give let say says said want wants need
  needs know like get got much many some any all each both either neither only still yet again actually
  quickly exactly really currently work works working thing things out up such under today explain describe
  define summarize summarise happen happens happened between
  difference differences versus vs way ways possible more via per want wanna gonna`.split(/\s+/u),
);

const senseGroups = [
  'show read open display view print see contents content inside cat',
  'calculate calculator compute evaluate solve math maths arithmetic',
  'convert change turn conversion',
  'search find lookup look seek retrieve retrieval query',
  'documentation docs doc document documents manual guide handbook knowledge',
  'time clock hour oclock late',
  'folder directory dir',
  'website page url link site web',
  'mail email e-mail',
  'delete remove erase',
  'picture image photo',
  'remember store save note',
];

const senses = new Map(
  senseGroups.flatMap((group) => {
    const stems = group.split(' ').map(stemOf);
    const [first = group] = stems;
    return stems.map((stem): [string, string] => [stem, `=${first}`]);
  }),
);
