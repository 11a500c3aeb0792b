import type { Tool } from 'millrace';
import { isRecord, lookUpForm, termsIn } from 'millrace/values';
import MiniSearch from 'minisearch';

export interface FoundTool {
  readonly name: string;
  /** Only comparable within one search. */
  readonly score: number;
}

export interface ToolIndex {
  /** Returns the tools that contain some of the terms, best first. */
  search(terms: readonly string[], fuzziness: number): readonly FoundTool[];
}

/**
 * Creates an index. Boosts, in descending order: name, description, names of parameters, descriptions of parameters.
 */
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
  index.addAll(tools.map(toIndexedTool));
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
  readonly parameters: string;
  readonly details: string;
}

/** Descriptions of tools may come from untrusted sources, and have any length. */
const maxLength = 2_000;

const toIndexedTool = ({ name, description, inputSchema }: Tool, id: number): IndexedTool => {
  const { properties } = inputSchema;
  const parameters = Object.entries(isRecord(properties) ? properties : {});
  return {
    id,
    name: name.slice(0, maxLength).replace(endOfAcronym, ' '),
    description: description.slice(0, maxLength),
    parameters: parameters
      .map(([parameter]) => parameter)
      .join(' ')
      .slice(0, maxLength),
    details: parameters
      .map(([, schema]) => descriptionOf(schema))
      .join(' ')
      .slice(0, maxLength),
  };
};

/** `HTTPRequest` is two words. */
const endOfAcronym = /(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu;

const descriptionOf = (schema: unknown): string =>
  isRecord(schema) && typeof schema['description'] === 'string' ? schema['description'] : '';
