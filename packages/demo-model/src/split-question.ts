import { shieldsOf } from './shields.js';
import { withoutPoliteness } from './without-politeness.js';
import { overlaps, type Span } from './words.js';

/** A piece of a question that may be a question of its own. */
export interface Fragment extends Span {
  readonly text: string;
  /** What separates it from the piece before: a `list` joint may as well join two names. */
  readonly joint: 'start' | 'sentence' | 'clause' | 'then' | 'list';
  /** It says under which condition the next piece is asked. */
  readonly condition: boolean;
}

/**
 * Cuts a message where one question may end and another begin: at sentences, at clauses and at the joints
 * of a list. Numbers, file names, quotes and brackets stay whole.
 */
export const splitQuestion = (message: string): readonly Fragment[] => {
  const shields = shieldsOf(message);
  const cuts = [...message.matchAll(joints)]
    .map((match) => ({ start: match.index, end: match.index + match[0].length, match }))
    .filter((cut) => !shields.some((shield) => overlaps(shield, cut)))
    .filter(({ start, end, match }) => !isWithinWord(message, start, end, match));
  let joint: Fragment['joint'] = 'start';
  let from = 0;
  const fragments: Fragment[] = [];
  for (const { start, end, match } of cuts) {
    const fragment = fragmentOf(message, { start: from, end: start }, joint);
    if (match.groups?.['inner'] !== undefined && !isCondition(fragment)) continue;
    const next = jointOf(match, fragment.text, message.slice(end, end + 80));
    fragments.push(fragment);
    joint = hasWords(fragment) || next !== 'list' ? next : joint;
    from = end;
  }
  fragments.push(fragmentOf(message, { start: from, end: message.length }, joint));
  return withConditions(fragments.filter(hasWords));
};

const joints =
  /(?<sentence>[.!?…]+["”’)]?(?=\s|$)|[;\n])|(?<then>[, ]{0,2}(?:\b(?:and|but) )?\bthen\b,?)|(?<and>,? (?:and|&|as well as)(?: also)? )|(?<comma>, )|(?<inner> )(?=(?:what|how|which)\b)/giu;

const abbreviation =
  /(?:^|[\s(])(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|st|approx|a\.m|p\.m|u\.s|u\.k)$/iu;

/** A dot of an abbreviation ends no sentence, and neither does a factorial that is followed by an operator. */
const isWithinWord = (message: string, start: number, end: number, match: RegExpMatchArray) => {
  if (match.groups?.['sentence'] === undefined) return false;
  if (match[0] === '.') return abbreviation.test(message.slice(Math.max(0, start - 12), start));
  const isFactorial =
    /[\d)]/u.test(message.charAt(start - 1)) && !/^\s+\p{Lu}/u.test(message.slice(end, end + 3));
  return match[0] === '!' && isFactorial;
};

const jointOf = ({ groups = {} }: RegExpMatchArray, left: string, right: string) => {
  if (groups['sentence'] !== undefined) return 'sentence';
  if (groups['then'] !== undefined) return 'then';
  if (groups['inner'] !== undefined) return 'clause';
  const opens = groups['and'] === undefined ? opensAfterComma : opensAfterAnd;
  return opens(left, right, groups['and']?.startsWith(',') === true) ? 'clause' : 'list';
};

const questionWord = /^(?:what|what's|how|why|who|who's|whose|whether|when|where|which)\b/iu;
const questionWordAfterComma = /^(?:what|what's|how|why)\b/iu;
const inversion =
  /^(?:is|are|does|do|did|can|could|will|would|should|was|were|has|have) (?:the|an?|it|there|this|that|you|i|we|they|my|your|[\d(])/iu;
const imperative =
  /^(?:add|append|delete|edit|erase|move|overwrite|remove|rename|replace|update|write|calculate|compute|compare|convert|count|define|describe|display|divide|double|evaluate|explain|fetch|find|give|halve|list|look|multiply|open|print|read|search|show|solve|square|subtract|summari[sz]e|take|tell|translate|work out)\b/iu;

const opensAfterAnd = (left: string, right: string, comma: boolean): boolean => {
  const clause = withoutPoliteness(right);
  if (questionWord.test(clause) || inversion.test(clause)) return true;
  return imperative.test(clause) && (comma || imperative.test(withoutPoliteness(left)));
};

const opensAfterComma = (_left: string, right: string): boolean => {
  const clause = withoutPoliteness(right);
  return questionWordAfterComma.test(clause) || inversion.test(clause) || imperative.test(clause);
};

const hasWords = ({ text }: Fragment): boolean => /[\p{L}\p{N}]/u.test(text);

const fragmentOf = (message: string, { start, end }: Span, joint: Fragment['joint']): Fragment => {
  const raw = message.slice(start, end);
  const text = raw.trim();
  const from = start + (raw.length - raw.trimStart().length);
  return { text, start: from, end: from + text.length, joint, condition: false };
};

const opensCondition =
  /^(?:if|when|once|suppose|supposing|assuming|given that)\b(?! (?:is|are|was|were|do|does|did|will|can|should)\b)/iu;

const isCondition = ({ text }: Fragment): boolean => opensCondition.test(withoutPoliteness(text));

const withConditions = (fragments: readonly Fragment[]): readonly Fragment[] =>
  fragments.map((fragment, index) => {
    const next = fragments[index + 1]?.joint;
    const condition = (next === 'clause' || next === 'then') && isCondition(fragment);
    return { ...fragment, condition };
  });
