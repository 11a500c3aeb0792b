import {
  asking,
  firstPerson,
  forgetting,
  forgettingSigns,
  joking,
  negative,
  negativeSigns,
  numbers,
  people,
  pronouns,
  reporting,
  speaking,
  supposing,
  thirdPerson,
  wishing,
} from './lexicon.js';

/** A part of a message with one subject and one verb, as far as punctuation and small words show. */
export interface Clause {
  readonly words: readonly string[];
  /** The index of its sentence in the message. */
  readonly sentence: number;
  /** Not a question, a hypothesis or a joke, and not the words of another person. */
  readonly isStated: boolean;
  /** It denies, or says that something has ended. */
  readonly isNegative: boolean;
  readonly isWish: boolean;
  /** Its sentence asks to forget something. */
  readonly isForgetting: boolean;
  /** The words for its subject if that is not the user. Empty for a pronoun. */
  readonly about?: readonly string[];
}

/** Words in lower case, numbers without separators; `don't` is `do` and `not`. */
export const wordsIn = (text: string): readonly string[] =>
  (
    text
      .normalize('NFKC')
      .toLowerCase()
      .replace(/[’`´]/gu, "'")
      .match(/\d+(?:[.,]\d+)*|[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*/gu) ?? []
  ).flatMap((word) =>
    /^\d/u.test(word)
      ? [word.replace(/[.,](?=\d{3}(?:\D|$))/gu, '')]
      : word.endsWith("n't")
        ? [word.slice(0, -3), 'not']
        : word.split("'").flatMap((part) => bare(part)),
  );

/** Forms without an apostrophe, as people type them. */
const bare = (word: string): readonly string[] => {
  const [, verb] =
    /^(do|does|did|is|are|was|were|have|has|had|ca|wo|would|could|should)nt$/u.exec(word) ?? [];
  return verb === undefined ? [numbers.get(word) ?? word] : [verb, 'not'];
};

/** The clauses of a message of the user, without the material that it shows. */
export const clausesIn = (text: string): readonly Clause[] =>
  sentencesIn(ownWords(text)).flatMap(clausesOfSentence);

// ---------------------------------------------------------------- material

/** Replaces what others wrote: quotes that are more than a name, what is to be translated, mails that are forwarded. */
const ownWords = (text: string): string =>
  text
    .replace(shownMaterial, ' .')
    .replace(forwarded, ' .')
    .replace(reportedText, '$1 .')
    .replace(quotes, (quoted) => (isName(quoted) ? quoted : ' . '));

const quotes =
  /"[^"]*"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|‘(?:[^’]|’(?=\p{L}))*’|(?<![\p{L}\p{N}])'(?:[^'\n]|'(?=\p{L}))*'|「[^」]*」|『[^』]*』/gu;

const isName = (quoted: string): boolean => {
  const spoken = wordsIn(quoted);
  return spoken.length <= 3 && !spoken.some((word) => firstPerson.has(word));
};

/** “Translate this: …”, “Summarise the following mail: …”: all that follows. */
const shownMaterial =
  /\b(?:translate|summari[sz]e|proofread|rewrite|paraphrase|reword|shorten|review|analy[sz]e|(?:what|how) (?:does|do|is|would)[^.!?:\n]{0,40}mean|(?:this|the|that|following) (?:\w+ )?(?:mail|e-?mail|message|letter|page|article|document|text|note|comment|post|log|transcript|story|poem|prompt|contract)|übersetze?|fasse|traduis|traduisez|résume|traduce|resume|traduci|riassumi|traduza|переведи)\b[^.!?:\n]{0,60}[:：][\s\S]*$/iu;

const forwarded =
  /(?:^|\n)[ \t]*(?:-{2,}[^\n]*(?:forwarded|original)[^\n]*|begin forwarded message|(?:from|subject|sent|to|von|betreff|de|objet|asunto):[^\n]*\n[ \t]*(?:from|subject|sent|to|date|an|datum|à|para|fecha):)[\s\S]*$/iu;

/** “My neighbour said: …”, to the end of the line. */
const reportedText =
  /\b((?:said|says|say|wrote|writes|reads|states|told \w+|sagte?|schrieb|dit|dijo|dice|disse|сказал[аи]?)\b[^.!?:\n]{0,30})[:：][^\n]*/giu;

// ---------------------------------------------------------------- sentences

interface Sentence {
  readonly text: string;
  readonly index: number;
}

const sentencesIn = (text: string): readonly Sentence[] =>
  text
    .split(/(?<=[.!?…])\s+|(?<=[。！？])|\n+/u)
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence))
    .map((sentence, index) => ({ text: sentence, index }));

const betweenClauses =
  /(?:[,:](?!\d)|[;，；：、()])+|\s[—–-]+\s|\s+(?=(?:but|although|because|while|whereas|aber|sondern|weil|mais|parce|pero|porque|ma|perché|mas|но)\s)|\s+(?=(?:that|dass|que|che|что)\s+(?:i|we|you|he|she|they|it|my|our|the|his|her|their|ich|er|sie|wir|mein\p{L}*|je|j'|il|elle|nous|yo|él|ella|io|lui|lei|я|он|она|мы)(?:\s|'|\p{L}))|\s+(?=(?:and|or|so|und|et|y|e|и)\s+(?:i|we|my|he|she|they|not|no|ich|er|sie|mein\p{L}*|je|il|elle|mon|ma|yo|él|ella|mi|no|io|lui|lei|я|он|она|не)(?:\s|'))/iu;

const clausesOfSentence = ({ text, index }: Sentence): readonly Clause[] => {
  const all = wordsIn(text);
  const isQuestion = /[?？]\s*["”»)]*\s*$/u.test(text);
  const isForgetting = all.some((word) => forgetting.has(word)) || forgettingSigns.test(text);
  const isJoke = all.some((word) => joking.has(word));
  const parts = text
    .split(betweenClauses)
    .map((part) => ({ part, words: wordsIn(part) }))
    .filter(({ words }) => words.length > 0);
  return parts.reduce<readonly Clause[]>((before, { part, words }, at) => {
    const previous = before.at(-1);
    const about = subjectOf(words, previous?.about);
    const spoken = withoutInterjection(words);
    const isAsked = isQuestion && (at === parts.length - 1 || asking.has(words[0] ?? ''));
    const isNegative = isDenied(spoken, part);
    // “I don't eat meat, fish or eggs”.
    const continued = isNegative || !isContinued(words) ? undefined : previous;
    // “I don't think that …”.
    const isDoubted = previous?.isNegative === true && joining.test(words[0] ?? '');
    return [
      ...before,
      {
        words,
        sentence: index,
        isStated:
          !isAsked && !isJoke && !isDoubted && !isSupposed(words, before) && !before.some(isReport),
        isNegative: isNegative || continued?.isNegative === true,
        isWish: words.some((word) => wishing.has(word)) || continued?.isWish === true,
        isForgetting,
        ...(about === undefined ? {} : { about }),
      },
    ];
  }, []);
};

const joining = /^(?:that|dass|que|che|что)$/u;

const contrasting = /^(?:but|aber|sondern|mais|pero|sino|ma|mas|но|а)$/u;

/** A clause without a subject and a verb of its own, as far as small words show. */
const isContinued = (words: readonly string[]): boolean =>
  !contrasting.test(words[0] ?? '') &&
  !words.some((word) => firstPerson.has(word) || pronouns.has(word) || thirdPerson.has(word));

/** “Translate I live in Rome” shows words, and states nothing. */
const showing =
  /^(?:translate|summari[sz]e|proofread|rewrite|paraphrase|reword|spell|pronounce|repeat|quote|übersetze?|traduis|traduce|traduci|traduza|переведи)$/u;

const isSupposed = (words: readonly string[], before: readonly Clause[]): boolean =>
  supposing.has(words[0] ?? '') ||
  showing.test(words.find((word) => word !== 'please') ?? '') ||
  (supposing.has(before[0]?.words[0] ?? '') &&
    words.some((word) => /^(?:would|could|might)$/u.test(word)));

export const isDenied = (spoken: readonly string[], text: string): boolean =>
  spoken.some((word, at) => negative.has(word) || (word === 'used' && spoken[at + 1] === 'to')) ||
  negativeSigns.test(text);

/** “No, I live in Berlin” denies something else. */
const withoutInterjection = (spoken: readonly string[]): readonly string[] =>
  /^(?:no|nope|nein|non|não|нет)$/u.test(spoken[0] ?? '') &&
  (spoken.length === 1 || spoken[1] === 'my' || speaking.has(spoken[1] ?? ''))
    ? spoken.slice(1)
    : spoken;

/** “He says”, and not “I said”. */
const isReport = ({ words, about }: Clause): boolean =>
  about !== undefined &&
  words.some((word) => reporting.has(word) || /^t(?:ells?|old)$/u.test(word));

/** The subject of a clause if it is not the user: `my sister`, `Tom`, a pronoun. A clause without one continues the last. */
const subjectOf = (
  spoken: readonly string[],
  previous: readonly string[] | undefined,
): readonly string[] | undefined => {
  const own = spoken.findIndex((word) => speaking.has(word));
  const other = spoken.findIndex((word) => pronouns.has(word) || people.has(word));
  const isJoint = own > 0 && /^(?:and|und|et|y|e|и)$/u.test(spoken[own - 1] ?? '');
  if (own >= 0 && (other < 0 || own < other || isJoint)) return undefined;
  const verb = spoken.findIndex((word, at) => at > 0 && thirdPerson.has(word));
  const isSubject = other >= 0 && (verb < 0 || other < verb);
  if (isSubject) {
    const word = spoken[other] ?? '';
    return pronouns.has(word) ? [] : [word];
  }
  if (verb > 0) {
    const before = spoken.slice(0, verb);
    return before.some((word) => firstPerson.has(word)) ||
      spoken.slice(verb).some((word) => firstPerson.has(word))
      ? undefined
      : before;
  }
  return spoken.some((word) => firstPerson.has(word)) ? undefined : previous;
};
