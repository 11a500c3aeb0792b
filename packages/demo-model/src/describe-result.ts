import { citePassages } from './cite-passages.js';
import { coverage, excerpt, focusOf } from './excerpt.js';
import type { Input } from './fill-arguments.js';
import type { Observation } from './read-conversation.js';
import { plainText, valueOf } from './read-result.js';
import type { ToolReading } from './read-tools.js';
import { shorten } from './shorten.js';
import { titleOf } from './title-of.js';
import { stemsOf, wordsOf } from './words.js';
import { withoutPoliteness } from './without-politeness.js';

/** Writes a sentence, or an excerpt, of what a tool gave for a part of a question. */
export const describeResult = (
  tool: ToolReading | undefined,
  input: Input,
  { name, text, isError }: Observation,
  part: string,
): string => {
  if (isError)
    return ended(`${titleOf(name)} could not answer “${shorten(part)}”: ${clipped(text)}`);
  if (text.trim() === '') return `${titleOf(name)} gave no text for “${shorten(part)}”.`;
  if (tool?.isRetrieval === true) return citePassages(shorten(part), text);
  const plain = plainText(text);
  if (plain.length > longestSentence || plain.includes('\n')) {
    return excerptFor(part, subjectOf(name, input), plain, focusIn(part, tool, input));
  }
  return ended(sentence(tool, name, input, text, plain));
};

/** What a long text says about a part; where it does not give what was asked for, that is said first. */
const excerptFor = (
  part: string,
  subject: string,
  text: string,
  focus: ReadonlySet<string>,
): string => {
  const request = withoutPoliteness(part);
  if (/^how (?:many|much|long|big|large)\b|^count\b/iu.test(request))
    return `This is ${subject}. I cannot count or measure in it:\n${excerpt(text, new Set())}`;
  if (asksForBeing.test(request)) return `Yes, ${subject}:\n${excerpt(text, new Set())}`;
  const isMissed = focus.size > 0 && coverage(text.slice(0, 4_000), focus) === 0;
  return isMissed && asks.test(request) && excerpt(text, focus) === excerpt(text, new Set())
    ? `This is ${subject}. I find no words of “${shorten(part)}” in it:\n${excerpt(text, focus)}`
    : `${subject}:\n${excerpt(text, focus)}`;
};

/** `is there a file called notes.txt`, `does notes.txt exist` */
const asksForBeing =
  /^(?:is|are) there (?:an? |any )?(?:file|folder|directory|[\w/-]*\.\w+)|^(?:do|does) .{1,200} exist\b/iu;

const asks = /^(?:who|whose|what|which|when|where|why|how|is|are|does|do|did|has|can)\b/iu;

const longestSentence = 300;

const sentence = (
  tool: ToolReading | undefined,
  name: string,
  input: Input,
  text: string,
  plain: string,
): string => {
  const slot = tool?.slots.find(({ kind }) => kind === 'expression');
  const expression = slot === undefined ? undefined : input[slot.name];
  if (typeof expression === 'string') return equation(expression, valueOf(text) ?? plain);
  const values = Object.values(input).map(shown);
  const isNamed = values.some(
    (value) => plain.includes(value) || plain.includes(value.split('/').at(-1) ?? value),
  );
  return isSentence.test(plain) || isNamed ? plain : `${subjectOf(name, input)}: ${plain}`;
};

const isSentence = /^\p{Lu}\S*(?: \S+){3,}[.!]$/u;

const equation = (expression: string, value: string): string => {
  if (value === 'true') return `Yes: ${expression}`;
  return value === 'false' ? `No: ${expression} is false` : `${expression} = ${value}`;
};

const subjectOf = (name: string, input: Input): string => {
  const values = Object.values(input)
    .filter((value) => typeof value === 'string')
    .join(', ');
  return clipped(values === '' ? wordsOf(name).join(' ') : values);
};

const shown = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const clipped = (text: string): string =>
  text.length > 300 ? `${text.slice(0, 300)}…` : text.trim();

const ended = (text: string): string => (/[.!?…:”]$/u.test(text) ? text : `${text}.`);

/** The words of a part that its arguments and its tool's name do not account for. */
const focusIn = (
  part: string,
  tool: ToolReading | undefined,
  input: Input,
): ReadonlySet<string> => {
  const values = Object.values(input).map(shown).join(' ');
  const own = [
    ...(tool?.ownStems ?? []),
    ...(tool?.vocabulary.keys() ?? []),
    ...stemsOf(values),
    ...stemsOf('show read open print see file content'),
  ];
  return new Set([...focusOf(part, new Set(own))].filter((stem) => !/^\d[\d-]*$/u.test(stem)));
};

/** What a request is about: `tell me the version` → `the version`. */
const subject = (part: string): string =>
  shorten(withoutPoliteness(part).replace(requesting, '') || part);

const requesting =
  /^(?:(?:tell|give|show|find|list|print|say)(?: me| us)?(?: about)? |what(?:'s|’s| is| are) |(?:who|where)(?:'s| is) )(?=\S)/iu;

/** Writes what a result says about a further part, which no tool fits. */
export const focusOnResult = (part: string, { text }: Observation): string => {
  const focus = focusOf(part);
  if (focus.size === 0) return `I have no tool for “${shorten(part)}”.`;
  const found = excerpt(text, focus);
  const isFound = stemsOf(found).some((stem) => focus.has(stem));
  return isFound
    ? `On “${shorten(part)}”:\n${found}`
    : `The result does not seem to say “${subject(part)}”.`;
};
