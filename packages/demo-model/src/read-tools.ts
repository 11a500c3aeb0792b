import type { ToolDeclaration } from '@millrace/core';
import { readSlots, type Slot } from './read-slots.js';
import { senseOf, stemOf, stemsOf, wordsOf } from './words.js';

/** A tool, as its declaration tells it. */
export interface ToolReading {
  readonly name: string;
  readonly description: string;
  readonly slots: readonly Slot[];
  /** Stems and senses of words that call for the tool, and so are no argument: its name, the verb it is described by. */
  readonly ownStems: ReadonlySet<string>;
  /** How much each stem says of the tool: 1 in its name, less in its description. */
  readonly vocabulary: ReadonlyMap<string, number>;
  /** It finds passages for a question. */
  readonly isRetrieval: boolean;
  /** It does something that cannot be taken back, as far as its name and the verb of its description say. */
  readonly isChanging: boolean;
}

/** The tools of a request, and how rare each word is among them. */
export interface Toolbox {
  readonly tools: readonly ToolReading[];
  /** How much a word distinguishes, by its inverse document frequency: most where no tool has it. */
  readonly rarity: (stem: string) => number;
}

/** Reads declarations. One that cannot be read is a tool without parameters. */
export const readTools = (declarations: readonly ToolDeclaration[]): Toolbox => {
  const tools = declarations.map(readTool);
  const counts = new Map<string, number>();
  for (const { vocabulary } of tools) {
    for (const stem of vocabulary.keys()) counts.set(stem, (counts.get(stem) ?? 0) + 1);
  }
  return {
    tools,
    rarity: (stem) => {
      const count = counts.get(stem) ?? 0;
      return Math.log(1 + tools.length / (count + 0.5));
    },
  };
};

const readTool = ({ name, description: given, inputSchema }: ToolDeclaration): ToolReading => {
  const description = given.slice(0, longestDescription);
  const slots = readSlots(inputSchema, description);
  const isRetrieval = findsPassages(stemsOf(`${name} ${description}`), slots);
  const [action = ''] = wordsOf(name);
  const [verb = ''] = wordsOf(description.slice(0, 40));
  const own = [...stemsOf(name), stemOf(verb)];
  return {
    name,
    description,
    slots,
    ownStems: new Set([...own, ...own.map(senseOf), ...(isRetrieval ? retrievalSenses : [])]),
    vocabulary: vocabularyOf(name, description, slots),
    isRetrieval,
    isChanging: [action, verb].some((word) => changing.has(stemOf(word))),
  };
};

const changing = new Set(
  `delete remove erase drop clear reset write overwrite create update change edit set replace move rename
  send post publish submit pay buy cancel kill stop run execute install deploy`
    .split(/\s+/u)
    .map(stemOf),
);

const longestDescription = 2_000;

const vocabularyOf = (
  name: string,
  description: string,
  slots: readonly Slot[],
): ReadonlyMap<string, number> => {
  const weights = new Map<string, number>();
  const learn = (text: string, weight: number): void =>
    stemsOf(text).forEach((stem) => {
      if (/^\d+$/u.test(stem)) return;
      raise(weights, stem, weight);
      if (senseOf(stem) !== stem) raise(weights, senseOf(stem), weight * 0.7);
    });
  for (const slot of slots) {
    learn(slot.name, 1);
    learn([slot.description, ...slot.examples, ...slot.choices.slice(0, 50)].join(' '), 0.7);
  }
  learn(description, 0.8);
  learn(name, 1);
  return weights;
};

const raise = (weights: Map<string, number>, key: string, weight: number): unknown =>
  weights.set(key, Math.max(weight, weights.get(key) ?? 0));

const retrievalSenses = new Set(
  ['search', 'docs', 'passage', 'wiki', 'article'].map(stemOf).map(senseOf),
);

const findsPassages = (stems: readonly string[], slots: readonly Slot[]): boolean => {
  const required = slots.filter((slot) => slot.required);
  const asked = required.length === 0 ? slots.slice(0, 1) : required;
  return (
    asked.length === 1 &&
    asked.every(({ kind }) => kind === 'query' || kind === 'prose') &&
    stems.some((stem) => retrievalSenses.has(senseOf(stem)))
  );
};
