import type { ToolDeclaration } from 'millrace';
import { type Filling, fillArguments } from './fill-arguments.js';
import { type Parameter, readParameters } from './parameter.js';
import { overlaps, type Phrase, stemsIn, type Word } from './phrase.js';

export interface ToolReading {
  readonly name: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  /** Stems of the words that call for the tool: its name and the verb of its description. */
  readonly ownStems: ReadonlySet<string>;
  /** Stems of its name and its description. */
  readonly topicStems: ReadonlySet<string>;
  /** How much each stem says about the tool, from 0 to 1. */
  readonly vocabulary: ReadonlyMap<string, number>;
  /** Finds passages for a question. */
  readonly isRetrieval: boolean;
  /** Changes something, as far as its name and the verb of its description say. */
  readonly isChanging: boolean;
}

export const readTool = (declaration: ToolDeclaration): ToolReading => {
  const { name } = declaration;
  const description = declaration.description.slice(0, 2_000);
  const parameters = readParameters(declaration.inputSchema);
  const nameStems = stemsIn(name);
  const topicStems = stemsIn(description);
  const details = parameters.flatMap((it) => [it.description, ...it.examples, ...it.choices]);
  const described = stemsIn([description, ...details].join(' ').slice(0, 10_000));
  const named = [...nameStems, ...parameters.flatMap((it) => stemsIn(it.name))];
  const actions = [...nameStems.slice(0, 2), ...topicStems.slice(0, 1)];
  const required = parameters.filter((it) => it.required);
  const [first, ...others] = required.length === 0 ? parameters.slice(0, 1) : required;
  const takesWords = others.length === 0 && (first?.kind === 'query' || first?.kind === 'prose');
  const isRetrieval = takesWords && actions.some((it) => searching.has(it));
  const ownStems = new Set([...nameStems, ...actions, ...(isRetrieval ? searching : [])]);
  return {
    name,
    description,
    parameters,
    ownStems,
    topicStems: new Set([...ownStems, ...topicStems]),
    vocabulary: new Map([
      ...described.map((stem) => [stem, 0.8] as const),
      ...named.map((stem) => [stem, 1] as const),
    ]),
    isRetrieval,
    isChanging: actions.some((it) => changing.has(it)),
  };
};

const searching = new Set(
  stemsIn('search find lookup look retrieve query docs documentation explain describe'),
);

const changing = new Set(
  stemsIn(
    `delete remove erase drop clear reset write create update change edit set replace move rename send post
    publish submit pay buy cancel kill stop run execute install deploy`,
  ),
);

/** A tool that fits the text, and the arguments that it gives. */
export interface Choice {
  readonly tool: ToolReading;
  readonly filling: Filling;
}

/** How many tools are looked at closely: those whose words fit best. */
export const mostTools = 40;

/**
 * Chooses the tool that the text asks for, if any does: the one that explains most of the words, by those that its
 * declaration has and those that become arguments.
 */
export const chooseTool = (phrase: Phrase, tools: readonly ToolReading[]): Choice | undefined => {
  const stems = new Set(phrase.content.map(({ stem }) => stem));
  const fitOf = ({ vocabulary }: ToolReading): number =>
    sum([...stems].map((stem) => vocabulary.get(stem) ?? 0));
  return tools
    .map((tool) => ({ tool, fit: fitOf(tool) }))
    .toSorted((a, b) => b.fit - a.fit)
    .slice(0, mostTools)
    .flatMap(({ tool }) => judge(tool, phrase))
    .toSorted((a, b) => b.score - a.score)[0];
};

/** Rates a tool for the text, if it fits at all. */
const judge = (tool: ToolReading, phrase: Phrase): readonly (Choice & { score: number })[] => {
  const filling = fillArguments(tool.parameters, phrase, tool);
  const { missing, isTelling, spans } = filling;
  const isArgument = (word: Word): boolean => spans.some((span) => overlaps(span, word));
  const others = phrase.content.filter((word) => !isArgument(word));
  const known = others.map(({ stem }) => tool.vocabulary.get(stem) ?? 0);
  // The part of the text, from 0 to 1, that the tool's words and arguments explain.
  const share = 1 - (others.length - sum(known)) / Math.max(phrase.content.length, 1);
  const hits = known.filter((weight) => weight > 0).length;
  // The text begins with what the tool does: `translate …`.
  const leads = tool.ownStems.has(phrase.content[0]?.stem ?? '');
  const isFilled = missing.length === 0;
  const isNamed = hits > 0 && (share > 0.5 || (isFilled && leads && share > 0.25));
  const isMeant = isTelling && isFilled && share > 0.3 && (hits > 0 || !tool.isChanging);
  const bonus = (isFilled ? 2 : 0) + (leads ? 0.5 : 0) + (isTelling ? 0.5 : 0);
  const score = share + bonus + Math.min(hits, 3) * 0.1;
  return isNamed || isMeant ? [{ tool, filling, score }] : [];
};

/** Chooses a tool that finds passages, for a question that no tool fits by its words. */
export const chooseSearch = (phrase: Phrase, tools: readonly ToolReading[]): Choice | undefined => {
  const tool = tools.find(({ isRetrieval }) => isRetrieval);
  if (tool === undefined || !asksOrNames(phrase)) return undefined;
  const filling = fillArguments(tool.parameters, phrase, tool);
  return filling.missing.length === 0 && !filling.refers ? { tool, filling } : undefined;
};

/** `how do interrupts work?` and `interrupts` may be answered by a document, `I am tired` may not. */
const asksOrNames = ({ text, content }: Phrase): boolean =>
  /^\W*(?:and |but |please )?(?:wh|how|is|are|do|does|can|explain|describe|find)/iu.test(text) ||
  (content.length <= 3 &&
    !/\b(?:i|i'm|we|you|am|is|are|write|make|it|that|them|result)\b/iu.test(text));

const sum = (numbers: readonly number[]): number => numbers.reduce((all, it) => all + it, 0);
