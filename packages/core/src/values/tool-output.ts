import { messageOf } from './errors.js';
import type { ContentBlock, Suspended, ToolCallBlock, ToolResultBlock } from './message.js';
import { areContentBlocks, freezeResult, plainBlock, textBlock, textOf } from './message.js';
import type { ToolRun } from './reply.js';
import { isRecord } from './json.js';

/** Named values that a tool passes to a later tool without showing them to the model. Any JavaScript value. */
export type Extras = Readonly<Record<string, unknown>>;

export interface ToolOutput {
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** For the user interface only; never sent to a model. */
  readonly details?: unknown;
  /** The output is the answer, and ends the call. */
  readonly finalAnswer?: boolean;
  /** Values for a later tool with `acceptExtras`, hidden from the model. Its first call in a later turn gets them. */
  readonly extras?: Readonly<Record<string, unknown>>;
  /** The result arrives later: `suspend` creates such an output. */
  readonly suspended?: Suspended;
}

/** An emission of a running tool: any number of progress values, then one output. */
export type ToolEmission =
  | { readonly type: 'progress'; readonly value: unknown }
  | { readonly type: 'output'; readonly output: ToolOutput };

/** The input of `toolOutput`: text or blocks for the model, and optional fields. */
export type ToolOutputInit = Partial<Omit<ToolOutput, 'content'>> & {
  readonly content: string | readonly ContentBlock[];
};

const brand = Symbol.for('millrace.toolOutput');

/** Creates a tool output with more than text: blocks, an error, details for the user interface, a final answer. */
export const toolOutput = ({ content, ...rest }: ToolOutputInit): ToolOutput => {
  const output = {
    isError: false,
    ...rest,
    content: typeof content === 'string' ? [textBlock(content)] : content,
    // Enumerable: a spread keeps it. JSON omits symbols.
    [brand]: true,
  };
  return output;
};

export const failedOutput = (text: string): ToolOutput =>
  toolOutput({ content: text, isError: true });

/** Converts a returned value to a tool output; a value that JSON cannot express becomes a failed one. */
export const toOutput = (returned: unknown): ToolOutput => {
  if (isOutput(returned)) return checkedOutput(returned);
  if (typeof returned === 'string') return toolOutput({ content: returned });
  if (returned === undefined) return toolOutput({ content: '(no output)' });
  try {
    return toolOutput({ content: asJson(returned) });
  } catch (cause) {
    return failedOutput(`The tool's output cannot be converted to JSON: ${messageOf(cause)}.`);
  }
};

const checkedOutput = (output: ToolOutput): ToolOutput => {
  try {
    if (areContentBlocks(output.content)) {
      const isError: unknown = output.isError;
      return { ...output, content: output.content.map(plainBlock), isError: isError === true };
    }
    return failedOutput(
      "The tool's output is invalid: its content is neither a string nor content blocks.",
    );
  } catch (cause) {
    return failedOutput(`The tool's output is invalid: ${messageOf(cause)}.`);
  }
};

export const isOutput = (value: unknown): value is ToolOutput =>
  isRecord(value) && Object.hasOwn(value, brand);

/** `stringify` returns `undefined` for functions and symbols, despite its type. */
const asJson = (value: unknown): string => {
  const json: unknown = JSON.stringify(value, bigintAsText);
  return typeof json === 'string' ? json : `(a ${typeof value})`;
};

const bigintAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;

export const rejectedResult = (toolCallId: string): ToolResultBlock =>
  freezeResult({
    type: 'tool_result',
    toolCallId,
    content: [textBlock('The result of this tool was rejected.')],
    isError: true,
  });

/** Truncates the text of a tool result to `maxObservation` characters, and adds a marker with the number omitted. */
export const cutObservation = (
  content: readonly ContentBlock[],
  maxObservation: number,
): readonly ContentBlock[] => {
  const length = content.reduce((sum, block) => sum + lengthOf(block), 0);
  if (length <= maxObservation) return content;
  let room = maxObservation;
  const kept = content.flatMap((block): readonly ContentBlock[] => {
    if (block.type !== 'text') return [block];
    const text = headOf(block.text, room);
    room -= text.length;
    return text === '' ? [] : [textBlock(text)];
  });
  return [
    ...kept,
    textBlock(`\n[… ${length - maxObservation + room} of ${length} characters omitted]`),
  ];
};

const lengthOf = (block: ContentBlock): number => (block.type === 'text' ? block.text.length : 0);

const headOf = (text: string, length: number): string => {
  const head = text.slice(0, length);
  return /[\uD800-\uDBFF]$/.test(head) && head.length < text.length ? head.slice(0, -1) : head;
};

export const toToolRun = ({ toolCall: { id, name, input }, result, ms }: Acted): ToolRun => ({
  toolCallId: id,
  name,
  input,
  output: textOf(result),
  isError: result.isError,
  ms,
});

interface Acted {
  readonly toolCall: ToolCallBlock;
  readonly result: ToolResultBlock;
  readonly ms: number;
}
