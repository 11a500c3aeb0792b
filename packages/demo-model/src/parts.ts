import { overlaps, type Phrase, readPhrase, type Span } from './phrase.js';
import { type Choice, chooseSearch, chooseTool, type ToolReading } from './choose-tool.js';

/** A part of a question that is answered on its own. */
export interface Part {
  readonly phrase: Phrase;
  readonly choice: Choice | undefined;
  /** It follows `then`: its call waits for the one before. */
  readonly follows: boolean;
  /** It forbids something, or depends on a condition. Neither is understood, so nothing is done about it. */
  readonly isConditional: boolean;
}

/** A question has up to this many parts: the last one is the rest. */
const mostParts = 12;

/** Splits a question into parts: at sentences, `then`, and a comma or `and` between parts that each ask for a tool. */
export const partsOf = (question: string, tools: readonly ToolReading[]): readonly Part[] => {
  const text = question.replace(listMarks, '');
  const ranges = splitText(text).reduce<readonly Range[]>((before, next, at) => {
    const last = before.at(-1);
    if (last === undefined) return [next];
    const isNew =
      before.length < mostParts && isCut(text, last, next, at < mostTrials ? tools : []);
    return isNew ? [...before, next] : [...before.slice(0, -1), { ...last, end: next.end }];
  }, []);
  const parts = ranges.map(({ start, end, joint }): Part => {
    const phrase = readPhrase(text.slice(start, end).trim());
    const isConditional = conditional.test(phrase.text);
    const choice = chooseTool(phrase, tools) ?? chooseSearch(phrase, tools);
    return { phrase, choice, follows: joint === 'then', isConditional };
  });
  return parts.filter(({ phrase }) => phrase.content.length > 0);
};

/** `1. `, `- ` or `• ` before a line */
const listMarks = /(?<=^|\n) ?(?:[-*•]|\d{1,2}[.)]) (?=\S)/gu;

const conditional = /^(?:(?:and|but|please) )*(?:if|unless|do not|don't|don’t|never)\b/iu;

interface Range extends Span {
  /** The separator before the range. */
  readonly joint: 'sentence' | 'then' | 'list';
}

const joints =
  /(?<sentence>(?:(?<!\b\p{L})\.|[!?…]){1,20}["”’)]?(?=\s|$)|[;\n])|(?<then>[, ]{0,2}(?:\b(?:and|but) )?\bthen\b,?)|,? (?:and|but|as well as) |, /giu;

/** Ranges that are not split. */
const enclosed =
  /"[^"\n]{1,500}"|“[^”\n]{1,500}”|`[^`\n]{1,500}`|(?<=\s)'[^'\n]{1,500}'(?!\p{L})|\([^()\n]{1,500}\)/gu;

const splitText = (text: string): readonly Range[] => {
  const whole = Array.from(text.matchAll(enclosed), spanOf);
  const cuts = Array.from(text.matchAll(joints), (match) => {
    const { sentence, then } = match.groups ?? {};
    const joint = sentence !== undefined ? 'sentence' : then === undefined ? 'list' : 'then';
    return { ...spanOf(match), joint } as const;
  }).filter((cut) => !whole.some((span) => overlaps(span, cut)));
  return [{ end: 0, joint: 'sentence' } as const, ...cuts]
    .map(({ end, joint }, at) => ({ start: end, end: cuts[at]?.start ?? text.length, joint }))
    .filter(({ start, end }) => /[\p{L}\p{N}]/u.test(text.slice(start, end)));
};

const spanOf = ({ 0: found, index }: RegExpExecArray): Span => ({
  start: index,
  end: index + found.length,
});

/** Joints of lists that are tried as cuts, and the length of text that is tried. */
const mostTrials = 40;
const longestTrial = 300;

const clause = /^\s*(?:what|how|why|who|when|where|which|is|are|does|do|don't|can|could)\b/iu;

/** `2 + 2 and the time in Rome` and `2 + 2 and sing a song` are two parts, `the time in Rome and Oslo` is one. */
const isCut = (text: string, last: Range, next: Range, tools: readonly ToolReading[]): boolean => {
  const phraseIn = ({ start, end }: Span): Phrase => readPhrase(text.slice(start, end).trim());
  const tried = (it: Phrase) => (it.text.length > longestTrial ? undefined : chooseTool(it, tools));
  const [one, two] = [phraseIn(last), phraseIn(next)];
  if (next.joint === 'sentence') return true;
  if (conditional.test(one.text)) return false;
  if (next.joint === 'then' || clause.test(two.text)) return true;
  const [first, second] = [tried(one), tried(two)];
  const [fit, rest] = isWhole(first) ? [first, two] : [second, one];
  const both = phraseIn({ start: last.start, end: next.end });
  if (!isWhole(fit)) return false;
  if (fit === first && isWhole(second)) return true;
  if (fit === second && first !== undefined) {
    return first.tool !== fit.tool && fit.tool.ownStems.has(two.words[0]?.stem ?? '');
  }
  const isAside = rest.content.length < 2 && !/\p{L}/u.test(text.slice(last.end, next.start));
  return !isAside && both.text.length <= longestTrial && isForeign(rest, fit, tried(both));
};

const isWhole = (choice?: Choice): choice is Choice => choice?.filling.missing.length === 0;

/** Whether text beside a whole part changes its tool, displaces its arguments, or says nothing about it. */
const isForeign = ({ content }: Phrase, { tool, filling }: Choice, both?: Choice): boolean => {
  if (both?.tool !== tool) return true;
  const [before, after] = [filling, both.filling].map(({ inputs }) =>
    inputs.flatMap((input) => Object.values(input).flat().map(String)),
  );
  const isIn = (value: string): boolean => after?.some((it) => it.includes(value)) === true;
  const adds = content.some(({ stem, text }) => tool.vocabulary.has(stem) || isIn(text));
  return !adds || before?.every(isIn) !== true;
};
