import {
  ending,
  endings,
  firstPerson,
  forgetting,
  forgettingSigns,
  negative,
  neutral,
  people,
  wished,
} from './lexicon.js';
import { type Clause, clausesIn, isDenied, wordsIn } from './statements.js';

/** A fact, as far as what the user said supports it. */
interface Claim {
  readonly text: string;
  readonly subject: string;
}

/**
 * Whether the user states a fact: all its content words, numbers and its denial are in statements of the user about the
 * same subject, in the sentences of the quote. Says nothing about whether it is true.
 */
export const isSupported = ({ text, subject }: Claim, quote: string, message: string): boolean => {
  const clauses = quotedIn(message, quote);
  const words = wordsIn(text);
  const own = clauses.filter(
    (clause) => clause.isStated && !clause.isForgetting && isAbout(clause, words, subject),
  );
  const subjectWords = isUser(subject) ? [] : contentOf(wordsIn(subject));
  const content = contentOf(words);
  const isNegative = isDenied(words, text);
  const isWish = words.some((word) => wished.has(word));
  const agreeing = own.filter(
    (clause) => clause.isNegative === isNegative && (isWish || !clause.isWish),
  );
  const covering = isNegative ? own : agreeing;
  return (
    content.length > 0 &&
    content.every((word) => covering.some((clause) => has(clause.words, word))) &&
    (!isNegative || content.some((word) => agreeing.some((clause) => has(clause.words, word)))) &&
    subjectWords.every((word) => clauses.some((clause) => has(clause.words, word))) &&
    numbersFit(words, covering)
  );
};

/** Whether the user asks to forget a fact, or says that it has ended or was wrong, and names it, or nothing else. */
export const isForgotten = (
  { text, attribute = '' }: Pick<Claim, 'text'> & { readonly attribute?: string },
  quote: string,
  message: string,
): boolean => {
  const clauses = quotedIn(message, quote).filter(({ isStated }) => isStated);
  const content = contentOf(wordsIn(text));
  // “Forget where I live” names a fact by its verb, or by its property.
  const names = [...content, ...wordsIn(`${text} ${attribute}`).filter(isLong)];
  const asked = clauses.filter(({ isForgetting }) => isForgetting);
  if (asked.length > 0) {
    const others = asked
      .flatMap(({ words }) => words)
      .filter((word) => !forgetting.has(word) && word.replace(forgettingSigns, '').length > 1);
    return names.some((word) => has(others, word)) || contentOf(others).length === 0;
  }
  const ended = clauses.filter(
    ({ words, isNegative }) => isNegative || words.some((it) => ending.has(it)),
  );
  return (
    ended.some(({ words }) => content.some((word) => has(words, word))) &&
    content.every((word) => clauses.some(({ words }) => has(words, word)))
  );
};

/** Small words name nothing. */
const isLong = (word: string): boolean =>
  word.length >= 4 &&
  !/^(?:users?|that|this|with|have|does|from|also|very|some|there)$/u.test(word);

/** The clauses of the sentences in which these words of the quote follow each other. */
const quotedIn = (message: string, quote: string): readonly Clause[] => {
  const clauses = clausesIn(message);
  const wanted = wordsIn(quote);
  if (wanted.length === 0) return [];
  const all = clauses.flatMap(({ words, sentence }) => words.map((word) => ({ word, sentence })));
  const isUnspaced = unspaced.test(quote);
  const found = isUnspaced
    ? clauses
        .filter(({ words }) => words.join(' ').includes(wanted.join(' ')))
        .map(({ sentence }) => sentence)
    : all.flatMap((_, at) => {
        const here = all.slice(at, at + wanted.length);
        return here.length === wanted.length &&
          here.every(({ word }, index) => word === wanted[index])
          ? here.map(({ sentence }) => sentence)
          : [];
      });
  const sentences = new Set(found);
  return clauses.filter(({ sentence }) => sentences.has(sentence));
};

const isUser = (subject: string): boolean =>
  /^(?:the )?(?:user|i|me|self|myself)?$/iu.test(subject.trim());

/** A fact about another person names them. */
const isAbout = (
  { about, words: ofClause }: Clause,
  words: readonly string[],
  subject: string,
): boolean => {
  if (about === undefined) return true;
  const named = [...words, ...(isUser(subject) ? [] : wordsIn(subject))].filter(
    (word) => !/^users?$/u.test(word),
  );
  return about.length === 0
    ? // A person in the clause itself is not its subject: “He has two cousins.”
      named.some((word) => people.has(word) && !ofClause.includes(word)) || !isUser(subject)
    : about.some((word) => word !== 'user' && !neutralSubject.has(word) && has(named, word));
};

const neutralSubject = new Set([
  'the',
  'a',
  'my',
  'our',
  'his',
  'her',
  'their',
  'it',
  'this',
  'that',
  'there',
  'and',
  'of',
]);

const contentOf = (words: readonly string[]): readonly string[] =>
  words.filter(
    (word) =>
      !neutral.has(word) && !negative.has(word) && !wished.has(word) && !firstPerson.has(word),
  );

/** “Has 3 cats” is not supported by “2 cats and 3 dogs”. */
const numbersFit = (words: readonly string[], clauses: readonly Clause[]): boolean =>
  words.every((word, at) => {
    if (!/^\d/u.test(word)) return true;
    const counted = words[at + 1];
    if (counted === undefined) return true;
    const before = clauses.flatMap((clause) =>
      clause.words.flatMap((it, index) =>
        matches(it, counted)
          ? clause.words.slice(Math.max(0, index - 2), index).filter((near) => /^\d/u.test(near))
          : [],
      ),
    );
    return before.length === 0 || before.includes(word);
  });

// ---------------------------------------------------------------- words

const unspaced =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;

const has = (words: readonly string[], word: string): boolean =>
  unspaced.test(word) ? hasRun(words.join(' '), word) : words.some((it) => matches(it, word));

/** In scripts without spaces: all words of a run but small ones, as a dictionary divides it. */
const hasRun = (text: string, run: string): boolean =>
  Array.from(segmenter().segment(run))
    .filter(({ segment, isWordLike }) => isWordLike === true && !isSmall(segment))
    .every(({ segment }) =>
      text.includes(/\p{sc=Hangul}/u.test(segment) ? segment.slice(0, 2) : segment),
    );

const segmenter = (): Intl.Segmenter => new Intl.Segmenter(undefined, { granularity: 'word' });

const isSmall = (word: string): boolean =>
  neutral.has(word) || /^\p{sc=Hiragana}{1,2}$/u.test(word);

/** Whether two words are forms of one: `teaching` and `teacher`, `vegetarian` and `Vegetarier`. */
const matches = (a: string, b: string): boolean => {
  if (a === b) return true;
  if (/\d/u.test(a + b)) return false;
  const [one, other] = [stem(a), stem(b)];
  if (one === other) return true;
  const longest = Math.max(one.length, other.length);
  const shared = sharedStart(one, other);
  const least = /^[\p{sc=Latin}]/u.test(a) ? 4 : 3;
  return shared >= least && shared >= 0.7 * longest;
};

const sharedStart = (a: string, b: string): number => {
  const at = Array.from(a).findIndex((letter, index) => letter !== b[index]);
  return at < 0 ? a.length : at;
};

const stem = (word: string): string => endings(word.normalize('NFD').replace(/\p{M}/gu, ''));
