import type { Tool } from '@millrace/core';
import { isRecord, lookUpForm, termsIn } from '@millrace/core/adapter';
import MiniSearch from 'minisearch';

/** A tool that was found. */
export interface FoundTool {
  readonly name: string;
  /** Good for comparing the tools of one search. */
  readonly score: number;
}

/** An index of tools by their words. */
export interface ToolIndex {
  /** The tools that hold some of the terms, the best first. */
  search(terms: readonly string[], fuzziness: number): readonly FoundTool[];
}

/** Makes an index. A tool's name counts most, then its description, then the names of its parameters, then what these say. */
export const createToolIndex = (tools: readonly Tool[]): ToolIndex => {
  const index = new MiniSearch<IndexedTool>({
    fields: ['name', 'description', 'parameters', 'details'],
    tokenize: termsIn,
    processTerm: lookUpForm,
    searchOptions: {
      tokenize: (terms) => terms.split(' '),
      processTerm: (term) => term,
      boost: { name: 3, description: 2, parameters: 1, details: 0.5 },
      prefix: (term) => term.length > 2,
      weights: { prefix: 0.5, fuzzy: 0.3 },
    },
  });
  index.addAll(tools.map(indexed));
  return {
    search: (terms, fuzziness) =>
      index
        .search(terms.join(' '), { fuzzy: (term) => (term.length > 4 ? fuzziness : false) })
        .flatMap(({ id, score }) => {
          const tool = tools[Number(id)];
          return tool === undefined ? [] : [{ name: tool.name, score }];
        }),
  };
};

interface IndexedTool {
  readonly id: number;
  readonly name: string;
  readonly description: string;
  /** The names of the parameters. */
  readonly parameters: string;
  /** What is said of the parameters. */
  readonly details: string;
}

/** What a tool says of itself may come from elsewhere, and be of any length. */
const longest = 2_000;

const indexed = ({ name, description, inputSchema }: Tool, id: number): IndexedTool => {
  const { properties } = inputSchema;
  const parameters = Object.entries(isRecord(properties) ? properties : {});
  return {
    id,
    name: name.slice(0, longest).replace(endOfAcronym, ' '),
    description: description.slice(0, longest),
    parameters: parameters
      .map(([parameter]) => parameter)
      .join(' ')
      .slice(0, longest),
    details: parameters
      .map(([, schema]) => saidIn(schema))
      .join(' ')
      .slice(0, longest),
  };
};

/** `HTTPRequest` is two words. */
const endOfAcronym = /(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu;

const saidIn = (schema: unknown): string =>
  isRecord(schema) && typeof schema['description'] === 'string' ? schema['description'] : '';
