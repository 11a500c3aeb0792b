import { chooseTool } from './choose-tool.js';
import type { Slot } from './read-slots.js';
import type { Toolbox, ToolReading } from './read-tools.js';
import { seeksInformation } from './seek-information.js';
import { wordsOf } from './words.js';

/** What the demo model is, in a few words that a program can show. */
export const demoModelDescription = 'rules and retrieval, not a language model';

/** Says what the model is and which tools it has, with a question to try for each. */
export const introduce = (toolbox: Toolbox, opening = ''): string => {
  const self = `${opening}I am ${demoModelDescription}: I pick tools for a question, fill in their arguments, and report what they say.`;
  return toolbox.tools.length === 0
    ? `${self} I have no tools here, so there is nothing I can look up or work out.`
    : `${self} My tools:\n${toolList(toolbox)}`;
};

/** Says that nothing fits a question, and what would. */
export const decline = (question: string, toolbox: Toolbox): string => {
  const quoted = question === '' ? 'that' : `“${question}”`;
  const self = `I cannot answer ${quoted}: I am ${demoModelDescription}`;
  return toolbox.tools.length === 0
    ? `${self}, and I have no tools here.`
    : `${self}, and none of my tools fits. My tools: ${namesOf(toolbox)}.`;
};

/** The names of the tools, on one short line. */
const namesOf = ({ tools }: Toolbox): string => {
  const names = tools.slice(0, longestList).map(({ name }) => name);
  const more = tools.length - names.length;
  return [...names, ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
};

const longestList = 8;

const toolList = (toolbox: Toolbox): string => {
  const lines = toolbox.tools.slice(0, longestList).map((tool) => {
    const example = exampleQuestion(tool, toolbox);
    return `- ${tool.name}: ${firstSentence(tool.description)}${example === undefined ? '' : ` Try “${example}”`}`;
  });
  const more = toolbox.tools.length - lines.length;
  return [...lines, ...(more > 0 ? [`- and ${more} more`] : [])].join('\n');
};

const firstSentence = (text: string): string => {
  const [paragraph = ''] = text.trim().split(/\n\s*\n/u, 1);
  const [first = ''] = paragraph
    .replace(/\s+/gu, ' ')
    .split(/(?<=[.!?])(?<!\b(?:e\.g|i\.e|etc|vs)\.)\s(?=[^\p{Ll}])/u, 1);
  const whole = first.length > longestSentence ? clauseOf(first) : first;
  return /[.!?…]$/u.test(whole) ? whole : `${whole}.`;
};

const longestSentence = 300;

/** As many clauses as fit, for a sentence that nobody would read to its end. */
const clauseOf = (sentence: string): string => {
  const head = sentence.slice(0, longestSentence);
  return `${/^.{20,}(?=[,;:(])/u.exec(head)?.[0].trim() ?? head.replace(/\s\S*$/u, '')} …`;
};

/** Makes a question from a declaration's examples that really leads to the tool, or none. */
export const exampleQuestion = (tool: ToolReading, toolbox: Toolbox): string | undefined => {
  const slot = tool.slots.find(({ examples }) => examples.length > 0);
  const name = wordsOf(tool.name).join(' ');
  return forms(name, slot).find((question) => {
    const choice = chooseTool(question, toolbox);
    if (choice === undefined) return tool.isRetrieval && seeksInformation(question);
    return choice.tool === tool && choice.filling.missing.length === 0;
  });
};

const forms = (name: string, slot: Slot | undefined): readonly string[] => {
  const example = slot?.examples[0];
  if (slot === undefined || example === undefined) return [`${name}?`];
  const general = [`${name} ${example}`, `Use ${name} with ${example}.`];
  switch (slot.kind) {
    case 'expression':
      return [`What is ${example}?`, ...general];
    case 'path':
      return [`Show me ${example}.`, ...general];
    case 'place':
      return [`What time is it in ${example}?`, `${name} in ${example}`, ...general];
    case 'query':
      return [
        ...(example.endsWith('?') ? [example] : []),
        `What is there about ${example}?`,
        ...general,
      ];
    default:
      return general;
  }
};
