import type { DialectPrompts, PromptNeeds } from './dialect.js';

/** The parts of a prompt that are the same in every dialect. */
export const commonPrompts: Pick<DialectPrompts, 'tools' | 'choice' | 'output'> = {
  tools: ({ tools }) =>
    tools.length === 0
      ? ''
      : ['The tools, each with the JSON Schema of its arguments:', ...tools.map(lineOf)].join('\n'),
  choice: ({ toolChoice }) => {
    if (toolChoice === 'none') return 'Do not use a tool now: give your final answer.';
    if (toolChoice === 'required') return 'Use a tool in your next reply.';
    return typeof toolChoice === 'object'
      ? `Use the tool ${toolChoice.name} in your next reply.`
      : '';
  },
  output: ({ outputSchema }) =>
    outputSchema === undefined
      ? ''
      : `Your final answer itself must be JSON of this schema: ${JSON.stringify({ ...outputSchema, $schema: undefined })}`,
};

const lineOf = ({ name, description, inputSchema }: PromptNeeds['tools'][number]): string =>
  `- ${name}: ${description.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify({ ...inputSchema, $schema: undefined })}`;

/** The parts of a prompt, one below the other. */
export const oneBelowTheOther = (parts: readonly string[]): string => parts.join('\n\n');
