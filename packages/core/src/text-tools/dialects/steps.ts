import type { Dialect, DialectOptions } from '../dialect.js';
import { answerJson, makeDialect, observation } from './common.js';

/** What may be told otherwise of the dialect `steps`. */
export interface StepsOptions extends DialectOptions {
  /** The entry that ends the task. A tool of that name is a tool like any other. Default: `complete_task`. */
  readonly completion?: string;
}

/** A list of tools to use as JSON, `[{"name": "…", "arguments": {…}}]`, with an entry of its own for the answer. Prose before it is a thought. */
export const stepsDialect = ({
  completion = 'complete_task',
  ...options
}: StepsOptions = {}): Dialect => {
  const forms = `[{"name": "name of a tool", "arguments": {"parameter": "value"}}]

[{"name": ${JSON.stringify(completion)}, "arguments": {"answer": "your answer"}}]`;
  const format = `Solve the task step by step. In each step think in a few words, then, on a line of its own, write a JSON list of the tools to use, in the first of these forms:

${forms}

"name" names one of the tools, and "arguments" has what it takes. Entries of one list run at the same time: put into one list only what does not depend on each other. You are then given the results as observations; never write them yourself. As soon as you can answer, use the second form, alone.`;
  return makeDialect(
    {
      name: 'steps',
      maxUses: Infinity,
      bareJson: 'whole',
      isList: true,
      completions: [completion.toLowerCase()],
      prompts: { format: () => format, forms: () => forms },
      write: {
        uses: (thought, uses) =>
          `${lead(thought)}[${uses.map(({ name, json }) => `{"name": ${JSON.stringify(name)}, "arguments": ${json}}`).join(', ')}]`,
        answer: (thought, text) =>
          `${lead(thought)}[{"name": ${JSON.stringify(completion)}, "arguments": {"answer": ${answerJson(text)}}}]`,
        thought: (thought) => thought,
        result: observation,
      },
    },
    options,
  );
};

const lead = (thought: string): string => (thought === '' ? '' : `${thought}\n`);
