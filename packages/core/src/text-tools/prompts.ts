import { responseFormat, section } from '../prompt/assemble.js';
import type { DialectPrompts, PromptNeeds } from './dialect.js';

/** The parts of a prompt that are the same in every dialect. */
export const commonPrompts: Omit<DialectPrompts, 'format' | 'forms'> = {
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
    (outputSchema && section('Response Format', responseFormat(outputSchema))) ?? '',
  correction: ({ why, tool, forms, written }) =>
    [
      `Your last reply could not be used: ${why}`,
      tool === undefined
        ? ''
        : `The arguments of the tool '${tool.name}' have this JSON Schema: ${JSON.stringify(tool.inputSchema)}`,
      `Reply again, in one of these forms:\n${forms}`,
      `You wrote:\n${written}`,
    ]
      .filter((part) => part !== '')
      .join('\n\n'),
  goOn: ({ forms }) =>
    `Go on: use a tool, or give your answer. Reply in one of these forms:\n${forms}`,
};

const lineOf = ({ name, description, inputSchema }: PromptNeeds['tools'][number]): string =>
  `- ${name}: ${description.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify({ ...inputSchema, $schema: undefined })}`;

/** The parts of a prompt, one below the other. */
export const oneBelowTheOther = (parts: readonly string[]): string => parts.join('\n\n');
