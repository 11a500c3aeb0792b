import type { Dialect, DialectOptions } from '../dialect.js';
import { labelledThought, makeDialect, observation } from './common.js';

const forms = `Thought: what you know, and what to do next
Action: name of a tool
Action Input: {"parameter": "value"}

Thought: why you can answer now
Final Answer: your answer`;

const format = `Solve the task step by step. In each step reply in one of these two forms:

${forms}

"Action" names one of the tools, and "Action Input" is one valid JSON object with its arguments. Use one tool a step, and stop behind its input. You are then given the result as an observation; never write one yourself. As soon as you can answer, write the final answer.`;

/** A line for each part of a step: `Thought:`, `Action:`, `Action Input:` with JSON, and `Final Answer:`. */
export const linesDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'lines',
      bareJson: 'none',
      prompts: { format: () => format, forms: () => forms },
      write: {
        uses: (thought, uses) =>
          `${labelledThought(thought)}${uses.map(({ name, json }) => `Action: ${name}\nAction Input: ${json}`).join('\n')}`,
        answer: (thought, text) => `${labelledThought(thought)}Final Answer: ${text}`,
        thought: (thought) => labelledThought(thought).trimEnd(),
        result: observation,
      },
    },
    options,
  );
