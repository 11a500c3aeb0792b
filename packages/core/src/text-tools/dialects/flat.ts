import type { Dialect, DialectOptions } from '../dialect.js';
import { answerJson, makeDialect, observation } from './common.js';

const forms = `{"scratchpad": "what you know, and what to do next", "tool": "name of a tool", "arguments": {"parameter": "value"}}

{"scratchpad": "why you can answer now", "answer": "your answer"}`;

const format = `Solve the task step by step. Each reply is one JSON object and nothing else, in one of these two forms:

${forms}

"tool" names one of the tools, and "arguments" has what it takes. Use one tool a reply. You are then given the result as an observation; never write one yourself. As soon as you can answer, reply with "answer".`;

/** The whole reply is one JSON object: `{"scratchpad": "…", "tool": "…", "arguments": {…}}` or `{"scratchpad": "…", "answer": "…"}`. */
export const flatDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'flat',
      bareJson: 'whole',
      prompts: { format: () => format, forms: () => forms },
      write: {
        uses: (thought, uses) =>
          uses
            .map(
              ({ name, json }, index) =>
                `{${index === 0 ? scratchpad(thought) : ''}"tool": ${JSON.stringify(name)}, "arguments": ${json}}`,
            )
            .join('\n'),
        answer: (thought, text) => `{${scratchpad(thought)}"answer": ${answerJson(text)}}`,
        thought: (thought) => JSON.stringify({ scratchpad: thought }),
        result: observation,
      },
    },
    options,
  );

const scratchpad = (thought: string): string =>
  thought === '' ? '' : `"scratchpad": ${JSON.stringify(thought)}, `;
