import type { Value } from './value.js';
import { withoutPoliteness } from './without-politeness.js';
import { zoneOf } from './time-zones.js';
import { isStopWord, type Token, tokensOf } from './words.js';

/** Finds the files and folders that a text names: by a path, by a well-known name, or behind the word `file`. */
export const pathsIn = (text: string): readonly Value[] => {
  const tokens = tokensOf(text);
  const paths = tokens.filter(({ text: word }) => isPath(word));
  if (paths.length > 0)
    return paths.map(({ text: value, ...span }) => ({ ...span, value, telling: true }));
  const known = tokens.flatMap((token) => wellKnown(token, tokens));
  if (known.length > 0) return known;
  const name = named(tokens);
  return name.length > 0 ? name : listing(text);
};

const isPath = (word: string): boolean =>
  word.length <= 300 &&
  /^(?:~?\/|\.{1,2}\/)?[\p{L}\p{N}_@.+-]+(?:\/[\p{L}\p{N}_@.+-]+)*\/?$/u.test(word) &&
  (hasExtension(word) || isNested(word) || /^(?:~?\/|\.{1,2}\/)|^\.\p{L}/u.test(word)) &&
  !isNoFile.test(word);

/** `src/a/b`, and no time zone */
const isNested = (word: string): boolean =>
  word.split('/').length > 2 && zoneOf(word) === undefined;

const hasExtension = (word: string): boolean =>
  /[\p{L}\p{N}_)-]\.\p{L}[\p{L}\p{N}]{0,9}$/u.test(word);

/** Abbreviations, web sites, and names such as `Node.js`. */
const isNoFile =
  /^(?:e\.g|i\.e|a\.m|p\.m|u\.s|u\.k|\p{Lu}\p{L}*\.js|(?:www\.)[^/]*|[^/]*\.(?:com|org|net|io|dev))$/iu;

const wellKnownNames = new Map<string, readonly string[]>([
  ['readme', ['README.md', 'README']],
  ['changelog', ['CHANGELOG.md']],
  ['makefile', ['Makefile']],
  ['dockerfile', ['Dockerfile']],
  ['license', ['LICENSE', 'LICENSE.md']],
  ['licence', ['LICENSE', 'LICENCE']],
]);

/** A readme can only be a file; a licence is a subject too. */
const wellKnown = ({ text, start, end }: Token, tokens: readonly Token[]): readonly Value[] => {
  const [value, ...others] = wellKnownNames.get(text.toLowerCase()) ?? [];
  if (value === undefined) return [];
  const file = tokens.find((token) => token.start === end + 1 && /^file$/iu.test(token.text));
  const isName = text === text.toUpperCase() || file !== undefined;
  const telling = value !== 'LICENSE' || isName;
  return [{ value, others, start, end: file?.end ?? end, telling }];
};

/** `the file notes`, `the file called notes`, `the src folder` */
const named = (tokens: readonly Token[]): readonly Value[] => {
  const at = tokens.findIndex(({ text }) => /^(?:file|folder|directory)$/iu.test(text));
  const [next, after] = at < 0 ? [] : tokens.slice(at + 1);
  const isNamed = /^(?:named|called)$/iu.test(next?.text ?? '');
  const isDefinite = /^the$/iu.test(tokens[at - 1]?.text ?? '');
  const behind = isNamed ? after : isDefinite ? next : undefined;
  const before = /^(?:folder|directory)$/iu.test(tokens[at]?.text ?? '')
    ? tokens[at - 1]
    : undefined;
  const token = [behind, before].find((it) => it !== undefined && isFileName(it.text));
  if (token === undefined) return [];
  const { text: value, start, end } = token;
  return [{ value, start, end, telling: false }];
};

const isFileName = (word: string): boolean =>
  /^[\w-]{2,60}$/u.test(word) && !isStopWord(word) && !ordinary.has(word.toLowerCase());

/** `list the files`, `what is in this directory` */
const listing = (text: string): readonly Value[] => {
  const match =
    /\b(?:files|folders|directories|(?:this|current|working|root) (?:directory|folder))\b/iu.exec(
      text,
    );
  if (match === null || !/^\W*(?:list|show|what|which)\b/iu.test(withoutPoliteness(text)))
    return [];
  return [{ value: '.', start: match.index, end: match.index + match[0].length, telling: false }];
};

const ordinary = new Set(
  'named called format formats size name names system path paths type types text current working root this whole'.split(
    ' ',
  ),
);
