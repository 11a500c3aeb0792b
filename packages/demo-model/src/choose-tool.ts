import { type Filling, type FillingContext, fillArguments } from './fill-arguments.js';
import { asksForNow, isClock } from './present-time.js';
import type { Toolbox, ToolReading } from './read-tools.js';
import { withoutPoliteness } from './without-politeness.js';
import { contentTokens, overlaps, senseOf, stemOf, type Token } from './words.js';

/** A tool that fits a text, and the arguments that the text gives. */
export interface Choice {
  readonly tool: ToolReading;
  readonly filling: Filling;
}

/**
 * Chooses the tool that a text asks for, if any does.
 *
 * Two things speak for a tool: words that its declaration shares with the text, weighed by their rarity, and
 * parameters that the text can fill. What matters is the share of the text that both explain: `what time is it
 * in Paris` is explained by a clock, `what is the weather in Paris` only by half.
 */
export const chooseTool = (
  text: string,
  toolbox: Toolbox,
  context: Pick<FillingContext, 'reference'> = {},
): Choice | undefined => {
  const words = contentTokens(withoutPoliteness(text));
  const explains = asksToExplain(text) && toolbox.tools.some(({ isRetrieval }) => isRetrieval);
  const [best] = shortlist(words, toolbox)
    .map((tool) => judge(tool, text, toolbox, context))
    .filter(
      (judged) =>
        isFit(judged, explains) && !leavesNumbers(judged, text) && !mistakesTime(judged, text),
    )
    .toSorted((a, b) => b.score - a.score);
  return best;
};

/** Tools that are looked at closely: where there are more, those whose words fit best. */
const longestList = 40;

const shortlist = (words: readonly Token[], { tools, rarity }: Toolbox): readonly ToolReading[] => {
  if (tools.length <= longestList) return tools;
  const stems = new Set(words.map(({ text }) => stemOf(text)));
  const fit = ({ vocabulary }: ToolReading): number =>
    [...stems].reduce((sum, stem) => sum + (vocabulary.get(stem) ?? 0) * rarity(stem), 0);
  return tools
    .map((tool) => ({ tool, score: fit(tool) }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, longestList)
    .map(({ tool }) => tool);
};

interface Judged extends Choice {
  readonly score: number;
  /** The part of the text, from 0 to 1, that the tool's words and arguments explain. */
  readonly share: number;
  /** The text names what the tool does. */
  readonly hits: number;
  /** The text begins with what the tool does: `translate …`. */
  readonly leads: boolean;
}

const judge = (
  tool: ToolReading,
  text: string,
  toolbox: Toolbox,
  context: Pick<FillingContext, 'reference'>,
): Judged => {
  const filling = fillArguments(tool.slots, text, { ...context, ownStems: tool.ownStems });
  const words = contentTokens(withoutPoliteness(text));
  const share = shareOf(tool, filling, contentTokens(text), toolbox);
  const hits = contentTokens(text).filter(
    (word) => familiarity(tool, word) > 0 && !filling.spans.some((span) => overlaps(span, word)),
  ).length;
  const [first] = words;
  const leads =
    first !== undefined && withoutPoliteness(text).startsWith(first.text) && isOwn(tool, first);
  const isFilled = filling.missing.length === 0;
  const score =
    share +
    (isFilled ? 2 : 0) +
    (leads ? 0.5 : 0) +
    (filling.telling ? 0.5 : 0) +
    Math.min(hits, 3) * 0.1;
  return { tool, filling, share, hits, leads, score };
};

const isFit = ({ tool, filling, share, hits, leads }: Judged, explains: boolean): boolean => {
  const { missing, telling, spans } = filling;
  if (explains && !tool.isRetrieval && !telling && spans.length === 0) return false;
  if (missing.length > 0) return hits > 0 && share > 0.5;
  if (telling && share > 0.2 && (hits > 0 || !tool.isChanging)) return true;
  return hits > 0 && (share > 0.5 || (leads && share > 0.25));
};

/** Arithmetic that leaves a number out is only a part of what was asked. */
const leavesNumbers = ({ tool, filling }: Judged, text: string): boolean =>
  filling.telling &&
  tool.slots.some(({ kind }) => kind === 'expression') &&
  contentTokens(text).some(
    (word) => /^\d/u.test(word.text) && !filling.spans.some((span) => overlaps(span, word)),
  );

/** A place by itself does not ask for its time: `how many days until Christmas`. */
const mistakesTime = ({ tool, leads }: Judged, text: string): boolean =>
  isClock(tool) && !leads && !asksForNow(text);

/** How much of a text, from 0 to 1, a tool's words and the arguments it found explain. */
export const shareOf = (
  tool: ToolReading,
  { spans }: Pick<Filling, 'spans'>,
  words: readonly Token[],
  { rarity }: Toolbox,
): number => {
  let known = 0;
  let all = 0;
  for (const word of words) {
    const isArgument = spans.some((span) => overlaps(span, word));
    const weight = isArgument ? rarity('') : rarity(stemOf(word.text));
    known += weight * (isArgument ? 1 : familiarity(tool, word));
    all += weight;
  }
  return all === 0 ? 0 : known / all;
};

const familiarity = ({ vocabulary }: ToolReading, { text }: Token): number => {
  const stem = stemOf(text);
  return vocabulary.get(stem) ?? vocabulary.get(senseOf(stem)) ?? 0;
};

const isOwn = ({ ownStems }: ToolReading, { text }: Token): boolean =>
  ownStems.has(stemOf(text)) || ownStems.has(senseOf(stemOf(text)));

const asksToExplain = (text: string): boolean =>
  /^(?:how (?!much|many|late|long|far|old|big|tall|high)|why|who|which|explain|describe)/iu.test(
    withoutPoliteness(text),
  );
