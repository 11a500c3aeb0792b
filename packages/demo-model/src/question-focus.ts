import { focusOf } from './excerpt.js';
import { senseOf, stemOf } from './words.js';

/**
 * The stems of what a question is about: without function words, the frame it is put in (`what do the docs say
 * about`), side clauses (`while it is running`) and, beside words, bare numbers.
 */
export const questionFocus = (question: string): ReadonlySet<string> => {
  const words = focusOf(question.replace(sideClause, ' '));
  const subject = [...words].filter((stem) => !frame.has(stem) && senseOf(stem) !== docs);
  const telling = subject.filter((stem) => !/^\d+$/u.test(stem));
  const focus = [telling, subject].find((it) => it.length > 0);
  return focus === undefined ? words : new Set(focus);
};

const sideClause = /\b(?:while|when|as) (?:it|they|that|this)(?: is| are|'s|'re) \w+ing\b/giu;

const docs = senseOf(stemOf('docs'));

const frame = new Set(
  'called call mean means meaning own use using used without while mention mentions find written information'
    .split(' ')
    .map(stemOf),
);

/** What `what is X` asks to be told about, if a question is of that form. */
export const asksForDefinition = (question: string): boolean =>
  /^\W*(?:(?:and|so|please|tell me) )*(?:what(?:'s|’s| is| are| does)|define|explain|describe)\b/iu.test(
    question,
  );
