import type { Conversation, Observation } from './conversation.js';
import type { Parameter } from './parameter.js';
import { spoken, stemsIn } from './phrase.js';
import { callKey, type Plan, type Step } from './plan.js';
import { foundNothing, passagesIn, plainText } from './results.js';
import type { ToolReading } from './choose-tool.js';

/** A short description of the demo model, for programs to show. */
export const demoModelDescription = 'a set of rules, not a language model';

export const introduce = (tools: readonly ToolReading[]): string => {
  const self = `Hello. I am ${demoModelDescription}: I choose tools for a question, fill in their arguments, and report their results.`;
  return tools.length === 0
    ? `${self} I have no tools here, so there is nothing I can look up or work out.`
    : `${self} My tools:\n${listOf(tools.map(lineFor)).join('\n')}`;
};

const listOf = (items: readonly string[], most = 8): readonly string[] => {
  const more = items.length - most;
  return [...items.slice(0, most), ...(more > 0 ? [`and ${more} more`] : [])];
};

const lineFor = ({ name, description, parameters }: ToolReading): string => {
  const [summary = ''] = description.trim().split(/(?<=\p{Ll}\.)\s|\n/u, 1);
  const example = parameters.find(({ examples }) => examples.length > 0)?.examples[0];
  const about = `- ${name}: ${ended(clipped(summary, 200))}`;
  return example === undefined ? about : `${about} For example: ${clipped(example, 80)}`;
};

/** Writes the answer: a sentence or a passage for each part of the question, in the order in which they were asked. */
export const writeAnswer = (
  planned: Plan,
  { question, rounds }: Conversation,
  tools: readonly ToolReading[],
): string => {
  const { steps, results } = planned;
  const made = new Set(
    steps.map((step) => (step.status === 'call' ? results.get(callKey(step.call)) : undefined)),
  );
  const others = rounds.flat().filter((it) => !made.has(it));
  const isUnfit = steps.every(({ status }) => status === 'unfit');
  if (isUnfit && others.length === 0) return decline(question, tools);
  const sentences = [
    ...(isUnfit ? [] : steps.map((step) => sentenceFor(step, planned))),
    ...others.map((it) => describeResult(it, question)),
  ];
  return [...new Set(sentences)].join(sentences.some((it) => it.includes('\n')) ? '\n\n' : ' ');
};

const decline = (question: string, tools: readonly ToolReading[]): string => {
  const self = `I cannot answer ${quoted(question)}: I am ${demoModelDescription}`;
  return tools.length === 0
    ? `${self}, and I have no tools here.`
    : `${self}, and none of my tools fits. My tools: ${listOf(tools.map(({ name }) => name)).join(', ')}.`;
};

const sentenceFor = (step: Step, { results, inVain }: Plan): string => {
  const { text } = step.phrase;
  if (step.status === 'missing') return askFor(step, inVain);
  if (step.status !== 'call') return reasons[step.status].replace('…', () => quoted(text));
  const result = results.get(callKey(step.call));
  if (result === undefined) return reasons.waiting.replace('…', () => quoted(text));
  return describeResult({ ...result, input: step.call.input }, text, step.tool);
};

const reasons = {
  waiting: 'I did not get to ….',
  blocked: 'I left out …, because it needs a result that I do not have.',
  conditional: 'I left out …, because I do not understand conditions and exceptions.',
  unfit: 'I have no tool for ….',
};

const askFor = (step: Extract<Step, { status: 'missing' }>, inVain?: Parameter): string => {
  const { phrase, tool, parameter } = step;
  const { description, choices, examples } = parameter;
  const about = description === '' ? '' : ` (${clipped(description, 200).replace(/[.\s]+$/u, '')})`;
  const known = choices.length > 0 ? choices : examples;
  const list = known.length > 0 ? ` For example: ${known.slice(0, 8).map(String).join(', ')}.` : '';
  return parameter === inVain
    ? `I left out ${quoted(phrase.text)}, because I find no ${spoken(parameter.name)} in it.${list}`
    : `${tool.name} needs the ${spoken(parameter.name)}${about}. Which one do you mean?${list}`;
};

const describeResult = (
  { name, input, text, isError }: Observation,
  part: string,
  tool?: ToolReading,
): string => {
  if (isError) return ended(`${name} failed for ${quoted(part)}: ${clipped(text, 300)}`);
  if (text.trim() === '') return `${name} returned nothing for ${quoted(part)}.`;
  if (tool?.isRetrieval === true) return quotePassages(part, text, tool);
  const plain = plainText(text);
  const words = Object.values(input).filter((it) => typeof it === 'string');
  const subject = clipped(words.length === 0 ? spoken(name) : words.join(', '), 200);
  if (plain.length > 300 || plain.includes('\n')) {
    return `${subject}:\n${excerpt(plain, part, subject)}`;
  }
  const isComputed = tool?.parameters.some(({ kind }) => kind === 'arithmetic') === true;
  if (isComputed && !plain.includes('=')) return ended(`${subject} = ${plain}`);
  const isSentence = /^\p{Lu}\S*(?: \S+){3,}[.!]?$/u.test(plain);
  const isNamed = words.some((word) => plain.includes(word));
  return ended(isSentence || isNamed ? plain : `${subject}: ${plain}`);
};

/** Of a long text, the lines with most of the words that are asked for, or else its beginning. */
const excerpt = (text: string, part: string, subject: string): string => {
  const known = new Set(stemsIn(subject));
  const focus = stemsIn(part).filter((stem) => !known.has(stem));
  const lines = text.split('\n', 5_000).map((line) => line.slice(0, 300));
  const scores = lines.map((line) => scoreOf(line, focus));
  const best = Math.max(...scores);
  const shown = lines.filter((_, at) => best === 0 || scores[at] === best).slice(0, 12);
  const rest = lines.length - shown.length;
  return [...shown, ...(rest > 0 ? [`… (${rest} more lines)`] : [])].join('\n');
};

/** The part of the words, from 0 to 1, that the text has. Code and tables count half: they rarely answer a question. */
const scoreOf = (text: string, words: readonly string[]): number => {
  const known = new Set(stemsIn(text));
  const share = words.filter((word) => known.has(word)).length / Math.max(words.length, 1);
  const isProse = (text.match(/[{}|=;<>]/gu)?.length ?? 0) < Math.max(text.length / 40, 1);
  return isProse ? share : share / 2;
};

/**
 * Quotes the passage that has most of the words of the question, with its source. With less than 60 % of them it may
 * not answer it, and with less than 30 % it is not quoted.
 */
const quotePassages = (question: string, result: string, { ownStems }: ToolReading): string => {
  const words = stemsIn(question).filter((stem) => !ownStems.has(stem));
  const [best] = passagesIn(result)
    .filter(({ source, text }) => source !== undefined || !foundNothing(text))
    .map(({ source = '', text }) => ({ source, text: text.slice(0, 4_000) }))
    .map((it) => ({ ...it, score: scoreOf(`${it.source} ${it.text}`, words) }))
    .toSorted((a, b) => b.score - a.score);
  if (best === undefined || best.score < 0.3) {
    return `The documents do not seem to answer ${quoted(question)}.`;
  }
  const paragraphs = best.text
    .split(/\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+[.)] |```))/u)
    .map((it) => it.replace(/^\s*(?:[-*>] |#{1,6} |```\w*)|\*\*/gu, '').replace(/\s+/gu, ' '))
    .filter((it) => it.trim() !== '');
  const scores = paragraphs.map((it) => scoreOf(it, words));
  const paragraph = paragraphs[scores.indexOf(Math.max(...scores))] ?? '';
  const quote = `“${clipped(paragraph, 400)}”${best.source === '' ? '' : ` (${best.source})`}`;
  const isSure = best.score >= 0.6 && !foundNothing(result);
  return isSure ? quote : `The nearest passage, which may not answer it: ${quote}`;
};

const quoted = (text: string): string =>
  `“${clipped(text.replace(/\s+/gu, ' ').replace(/[\s.?!…,;:]{1,20}$/u, ''), 80)}”`;

const clipped = (text: string, most: number): string => {
  const bare = text.slice(0, most * 2 + 100).trim();
  return bare.length > most ? `${bare.slice(0, most).replace(/\s\S*$/u, '')} …` : bare;
};

const ended = (text: string): string => (/[.!?…”]$/u.test(text) ? text : `${text}.`);
