import type { Dialect, DialectOptions } from '../dialect.js';
import { answerJson, labelledThought, makeDialect, observation } from './common.js';

const forms = `Thought: what you know, and what to do next
Action: {"tool": "name of a tool", "inputs": {"parameter": "value"}}

Thought: why you can answer now
Action: {"final_answer": "your answer"}`;

const format = `Solve the task step by step. In each step reply with a thought and one action, in one of these two forms:

${forms}

The action is valid JSON on the line of its label: "tool" names one of the tools, and "inputs" has its arguments. Use one tool a step, and stop behind the action. You are then given the result as an observation; never write one yourself. As soon as you can answer, use "final_answer".`;

/** A thought, then one action as JSON behind a label: `Action: {"tool": "…", "inputs": {…}}` or `Action: {"final_answer": "…"}`. */
export const actionDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'action',
      bareJson: 'keyed',
      prompts: { format: () => format, forms: () => forms },
      write: {
        uses: (thought, uses) =>
          `${labelledThought(thought)}${uses.map(({ name, json }) => `Action: {"tool": ${JSON.stringify(name)}, "inputs": ${json}}`).join('\n')}`,
        answer: (thought, text) =>
          `${labelledThought(thought)}Action: {"final_answer": ${answerJson(text)}}`,
        thought: (thought) => labelledThought(thought).trimEnd(),
        result: observation,
      },
    },
    options,
  );
