import type { JsonSchema, ModelRequest, ToolDeclaration, ToolResultBlock } from 'millrace';
import {
  checkOptions,
  defined,
  isFlag,
  isFunction,
  isObject,
  isRecord,
  parsedJson,
  type Rule,
} from 'millrace/values';
import type { Label } from './scanner.js';

const actionForms = `Thought: what you know, and what to do next
Action: {"tool": "name of a tool", "inputs": {"parameter": "value"}}

Thought: why you can answer now
Action: {"final_answer": "your answer"}`;

const actionFormat = `Solve the task step by step. In each step reply with a thought and one action, in one of these two forms:

${actionForms}

The action is valid JSON on the line of its label: "tool" names one of the tools, and "inputs" has its arguments. Use one tool per step, and stop after the action. You are then given the result as an observation; never write one yourself. As soon as you can answer, use "final_answer".`;

/** A thought, then one action as JSON: `Action: {"tool": "…", "inputs": {…}}` or `Action: {"final_answer": "…"}`. */
export const actionDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'action',
      bareJson: 'keyed',
      prompts: { format: () => actionFormat, forms: () => actionForms },
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

const linesForms = `Thought: what you know, and what to do next
Action: name of a tool
Action Input: {"parameter": "value"}

Thought: why you can answer now
Final Answer: your answer`;

const linesFormat = `Solve the task step by step. In each step reply in one of these two forms:

${linesForms}

"Action" names one of the tools, and "Action Input" is one valid JSON object with its arguments. Use one tool per step, and stop after its input. You are then given the result as an observation; never write one yourself. As soon as you can answer, write the final answer.`;

/** A labelled line for each part: `Thought:`, `Action:`, `Action Input:` with JSON, and `Final Answer:`. */
export const linesDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'lines',
      bareJson: 'none',
      prompts: { format: () => linesFormat, forms: () => linesForms },
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

const flatForms = `{"scratchpad": "what you know, and what to do next", "tool": "name of a tool", "arguments": {"parameter": "value"}}

{"scratchpad": "why you can answer now", "answer": "your answer"}`;

const flatFormat = `Solve the task step by step. Each reply is one JSON object and nothing else, in one of these two forms:

${flatForms}

"tool" names one of the tools, and "arguments" has its arguments. Use one tool per reply. You are then given the result as an observation; never write one yourself. As soon as you can answer, reply with "answer".`;

/** Each reply is one JSON object: `{"scratchpad": "…", "tool": "…", "arguments": {…}}` or with `"answer": "…"`. */
export const flatDialect = (options: DialectOptions = {}): Dialect =>
  makeDialect(
    {
      name: 'flat',
      bareJson: 'whole',
      prompts: { format: () => flatFormat, forms: () => flatForms },
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

export interface StepsOptions extends DialectOptions {
  /** The entry that ends the task, unless a tool has that name. Default: `complete_task`. */
  readonly completion?: string | undefined;
}

/** Tool calls as a JSON list, `[{"name": "…", "arguments": {…}}]`, or an answer entry; prose before is a thought. */
export const stepsDialect = ({
  completion = 'complete_task',
  ...options
}: StepsOptions = {}): Dialect => {
  const forms = `[{"name": "name of a tool", "arguments": {"parameter": "value"}}]

[{"name": ${JSON.stringify(completion)}, "arguments": {"answer": "your answer"}}]`;
  const format = `Solve the task step by step. In each step think in a few words, then, on a line of its own, write a JSON list of the tools to use, in the first of these forms:

${forms}

"name" names one of the tools, and "arguments" has its arguments. Entries of one list run in parallel: put only independent calls into one list. You are then given the results as observations; never write them yourself. As soon as you can answer, use the second form, alone.`;
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

type DialectBase = Pick<Dialect, 'name' | 'bareJson' | 'write'> &
  Partial<Pick<Dialect, 'maxUses' | 'isList' | 'completions'>> & {
    readonly prompts: Pick<DialectPrompts, 'format' | 'forms'>;
  };

const makeDialect = ({ prompts: own, ...base }: DialectBase, options: DialectOptions): Dialect => {
  const standard = { ...commonPrompts, ...own };
  checkOptions(`${base.name}Dialect()`, options, rules);
  const { strict = false, words, prompts = {}, prompt = joinParts } = options;
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

const observation = ({ tool, text, isError, isOneOfMany }: WrittenResult): string =>
  `Observation: ${isOneOfMany ? `[${tool}] ` : ''}${isError ? 'Error: ' : ''}${text}`;

const labelledThought = (thought: string): string =>
  thought === '' ? '' : `Thought: ${thought}\n`;

const answerJson = (text: string): string =>
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
    outputSchema === undefined
      ? ''
      : `[Response Format]\nYour final answer itself must be JSON of this schema, and nothing else: ${JSON.stringify({ ...outputSchema, $schema: undefined })}`,
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
    `Continue: use a tool, or give your answer. Reply in one of these forms:\n${forms}`,
};

const lineOf = ({ name, description, inputSchema }: PromptNeeds['tools'][number]): string =>
  `- ${name}: ${description.replaceAll(/\s+/g, ' ').trim()} ${JSON.stringify({ ...inputSchema, $schema: undefined })}`;

const joinParts = (parts: readonly string[]): string => parts.join('\n\n');

interface WrittenUse {
  readonly name: string;
  /** Its arguments as JSON, or the invalid text of the model. */
  readonly json: string;
}

interface WrittenResult extends Pick<ToolResultBlock, 'isError'> {
  readonly tool: string;
  readonly text: string;
  readonly isOneOfMany: boolean;
}

/** Formats earlier messages, so the model sees the form that it should follow. */
export interface DialectWriter {
  readonly uses: (thought: string, uses: readonly WrittenUse[]) => string;
  readonly answer: (thought: string, text: string) => string;
  readonly thought: (thought: string) => string;
  readonly result: (result: WrittenResult) => string;
}

export interface PromptNeeds {
  readonly tools: readonly ToolDeclaration[];
  readonly toolChoice: ModelRequest['toolChoice'] | undefined;
  readonly outputSchema: JsonSchema | undefined;
}

type PromptPart = (needs: PromptNeeds) => string;

/** The parts of the prompt that describes a dialect, in order. */
export interface DialectPrompts {
  /** The format of a reply. */
  readonly format: PromptPart;
  /** The list of tools. */
  readonly tools: PromptPart;
  /** The requirement of `toolChoice`. */
  readonly choice: PromptPart;
  /** The schema of a structured output. */
  readonly output: PromptPart;
  /** The forms of a reply in a few lines, shown after the reason why a reply could not be read. */
  readonly forms: PromptPart;
  /** The correction of an unusable reply. The model does not see the reply itself. */
  readonly correction: (needs: CorrectionNeeds) => string;
  /** The message to a model that has only thought so far. */
  readonly goOn: (needs: PromptNeeds & Pick<CorrectionNeeds, 'forms'>) => string;
}

interface CorrectionNeeds extends PromptNeeds {
  readonly why: string;
  readonly tool: ToolDeclaration | undefined;
  readonly forms: string;
  readonly written: string;
}

type LabelTranslations = Readonly<Partial<Record<Label, readonly string[]>>>;

export interface DialectOptions {
  /** Whether prose is an error instead of the answer. Default: false. */
  readonly strict?: boolean | undefined;
  readonly prompts?: Partial<DialectPrompts> | undefined;
  /** Translations of labels to read, such as `{ thought: ['Gedanke'] }`. To write them, replace `write` too. */
  readonly words?: LabelTranslations | undefined;
  /** Builds the whole prompt from its parts. Default: joins them with blank lines. */
  readonly prompt?: ((parts: readonly string[], needs: PromptNeeds) => string) | undefined;
}

/** Text format of tool calls for models without native ones, as data and small functions. */
export interface Dialect {
  readonly name: string;
  readonly strict: boolean;
  /** Maximum number of tool calls per reply; the others are refused. */
  readonly maxUses: number;
  readonly labels: readonly Label[];
  readonly words?: LabelTranslations | undefined;
  /** Unlabelled JSON that is an action: at the start (`whole`), also after a thought if its keys match (`keyed`). */
  readonly bareJson: 'whole' | 'keyed' | 'none';
  /** Whether an action is a list and prose before it a thought. */
  readonly isList: boolean;
  /** Names of the final answer, unless a tool has that name. */
  readonly completions: readonly string[];
  readonly stopSequences: readonly string[];
  readonly prompts: DialectPrompts;
  readonly prompt: (parts: readonly string[], needs: PromptNeeds) => string;
  readonly write: DialectWriter;
}
