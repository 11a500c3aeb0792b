import { isRecord, parsedJson } from '../../json.js';
import type {
  Dialect,
  DialectOptions,
  DialectPrompts,
  PromptNeeds,
  WrittenResult,
} from '../dialect.js';
import { checkOptions, defined, isFlag, isFunction, isObject, type Rule } from '../../options.js';
import { responseFormat, section } from '../../prompt/assemble.js';

export type DialectBase = Pick<Dialect, 'name' | 'bareJson' | 'write'> &
  Partial<Pick<Dialect, 'maxUses' | 'isList' | 'completions'>> & {
    readonly prompts: Pick<DialectPrompts, 'format' | 'forms'>;
  };

export const makeDialect = (
  { prompts: own, ...base }: DialectBase,
  options: DialectOptions,
): Dialect => {
  const standard = { ...commonPrompts, ...own };
  checkOptions(`${base.name}Dialect()`, options, rules);
  const { strict = false, words, prompts = {}, prompt = oneBelowTheOther } = options;
  const parts = Object.fromEntries(Object.keys(standard).map((name) => [name, isFunction]));
  checkOptions(`${base.name}Dialect(): 'prompts'`, prompts, parts);
  return {
    maxUses: 1,
    isList: false,
    completions: [],
    labels: ['thought', 'action', 'input', 'observation', 'answer'],
    stopSequences: ['\nObservation:'],
    ...base,
    strict,
    words,
    prompts: { ...standard, ...defined(prompts) },
    prompt,
  };
};

const rules: Readonly<Record<keyof DialectOptions, Rule>> = {
  strict: isFlag,
  words: isObject,
  prompts: isObject,
  prompt: isFunction,
};

export const observation = ({ tool, text, isError, isOneOfMany }: WrittenResult): string =>
  `Observation: ${isOneOfMany ? `[${tool}] ` : ''}${isError ? 'Error: ' : ''}${text}`;

export const labelledThought = (thought: string): string =>
  thought === '' ? '' : `Thought: ${thought}\n`;

export const answerJson = (text: string): string =>
  isRecord(parsedJson(text)) ? text : JSON.stringify(text);

const commonPrompts: Omit<DialectPrompts, 'format' | 'forms'> = {
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

const oneBelowTheOther = (parts: readonly string[]): string => parts.join('\n\n');
