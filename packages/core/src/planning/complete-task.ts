import { checkOptions, isFlag, type Rule } from '../options.js';
import { tool } from '../tool.js';
import { toolOutput } from '../tool-output.js';
import type { Tool } from '../tools/types.js';

/** How a task is completed. */
export interface CompleteTaskOptions {
  /** What the model calls the tool. Default: `complete_task`. */
  readonly name?: string;
  /** The final answer is always written by `synthesize`, also where the tool was given one. Default: false. */
  readonly finalize?: boolean;
}

/** What the tool is called, unless it is told otherwise. */
export const completeTaskName = 'complete_task';

/**
 * Makes the tool by which the model says that the task is done. The `answer` that it gives is the answer of the call, with reason `toolFinal`; where it gives none, or
 * with `finalize`, the phase `synthesize` writes one.
 */
export const completeTask = (options: CompleteTaskOptions = {}): Tool => {
  checkOptions('completeTask()', options, completeTaskRules);
  const { name = completeTaskName, finalize = false } = options;
  return tool({
    name,
    idempotent: true,
    description: finalize
      ? 'Says that the task is done, as soon as all that the answer needs has been found. You are then asked to write it.'
      : 'Says that the task is done, as soon as all that the answer needs has been found, and gives the answer.',
    input: {
      type: 'object',
      properties: {
        answer: {
          description: finalize
            ? 'What the answer is, in short.'
            : 'The whole answer, for whoever has asked. Without it you are asked to write it.',
        },
      },
    },
    run: ({ answer }) => {
      const text = written(answer);
      return text === '' || finalize
        ? 'The task is marked as done.'
        : toolOutput({ content: text, finalAnswer: true });
    },
  });
};

const written = (answer: unknown): string => {
  if (answer === undefined || answer === null) return '';
  return typeof answer === 'string' ? answer.trim() : JSON.stringify(answer);
};

const completeTaskRules: Readonly<Record<keyof CompleteTaskOptions, Rule>> = {
  name: [(value) => typeof value === 'string' && value !== '', 'the name of a tool'],
  finalize: isFlag,
};
