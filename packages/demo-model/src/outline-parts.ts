import { chooseTool, type Choice } from './choose-tool.js';
import type { Toolbox } from './read-tools.js';
import { isSmallTalk } from './small-talk.js';
import { type Fragment, splitQuestion } from './split-question.js';
import { contentTokens } from './words.js';

/** A part of a question that is answered on its own. */
export interface Part {
  readonly text: string;
  /** It only says when the other parts hold. */
  readonly condition: boolean;
  /** The tool that it asks for by itself. */
  readonly choice: Choice | undefined;
}

/** The parts of a question. */
export interface OutlinedQuestion {
  readonly parts: readonly Part[];
  /** There are more parts than are worked on. */
  readonly isCut: boolean;
}

/** Parts of one message that are worked on. */
export const mostParts = 12;

/**
 * Takes a question apart. A joint between names is a cut only where both sides ask for a tool of their own:
 * `2 + 2 and the time in Rome` is two parts, `the time in Rome and Oslo` is one.
 */
export const outlineParts = (question: string, toolbox: Toolbox): OutlinedQuestion => {
  const fragments = splitQuestion(question);
  const { ranges } = fragments.reduce<Outline>(
    (outline, fragment, index) => extend(outline, fragment, index < mostTrials, question, toolbox),
    { ranges: [] },
  );
  const parts = ranges
    .filter(({ start, end }) => !isSmallTalk(question.slice(start, end)))
    .slice(0, mostParts)
    .map(({ start, end, condition }) => {
      const text = question.slice(start, end);
      return { text, condition, choice: condition ? undefined : chooseTool(text, toolbox) };
    })
    .filter(({ text, choice }) => choice !== undefined || contentTokens(text).length > 0);
  return { parts, isCut: ranges.length > mostParts };
};

interface Outline {
  readonly ranges: readonly Pick<Fragment, 'start' | 'end' | 'condition'>[];
}

/** Joints of lists that are tried as cuts; further ones join. */
const mostTrials = 40;

const longestTrial = 300;

const extend = (
  { ranges }: Outline,
  fragment: Fragment,
  tries: boolean,
  question: string,
  toolbox: Toolbox,
): Outline => {
  const last = ranges.at(-1);
  if (last === undefined) return { ranges: [fragment] };
  const isCut =
    fragment.joint === 'list'
      ? tries &&
        isWhole(fragment.text, toolbox) &&
        isWhole(question.slice(last.start, last.end), toolbox)
      : fragment.joint !== 'clause' || contentTokens(fragment.text).length > 0;
  return isCut
    ? { ranges: [...ranges, fragment] }
    : { ranges: [...ranges.slice(0, -1), { ...last, end: fragment.end }] };
};

const isWhole = (text: string, toolbox: Toolbox): boolean =>
  text.length <= longestTrial && chooseTool(text, toolbox)?.filling.missing.length === 0;
