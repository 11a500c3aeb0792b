import { messageOf, MillraceError } from './errors.js';
import type {
  ContentBlock,
  ResultSource,
  Suspended,
  ToolCallBlock,
  ToolResultBlock,
} from './message.js';
import {
  areContentBlocks,
  freezeResult,
  isContentBlock,
  plainBlock,
  textBlock,
  textOf,
} from './message.js';
import { hasOnly, isError, toPlainJson } from './plain-json.js';
import type { ToolRun } from './reply.js';
import { defined, isRecord } from './json.js';

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

/** The output of a tool call whose result arrives later. */
export const suspendedOutput = (request: unknown, from: ResultSource, by?: string): ToolOutput =>
  toolOutput({ content: later, suspended: { request, from, ...defined({ by }) } });

export const later = 'Suspended: the result comes later.';

export const failedOutput = (text: string): ToolOutput =>
  toolOutput({ content: text, isError: true });

const errors = new WeakMap<ToolOutput, Error>();
const losses = new WeakMap<ToolOutput, readonly string[]>();

/** The output of a tool that threw. The error itself stays in this process. */
export const thrownOutput = (cause: unknown, text = `Failed: ${messageOf(cause)}`): ToolOutput => {
  const output = failedOutput(text);
  const what = 'The tool threw a value that is not an Error';
  const error = isError(cause)
    ? cause
    : new MillraceError('tool', `${what}: ${messageOf(cause)}`, { cause });
  errors.set(output, error);
  return output;
};

/** Returns the error that a tool threw or returned. */
export const errorIn = (output: ToolOutput): Error | undefined => errors.get(output);

/** Returns the parts of a returned value that the output does not have. */
export const lostIn = (output: ToolOutput): readonly string[] => losses.get(output) ?? [];

/** Converts a returned value to a tool output; a value that JSON cannot express becomes a failed one. */
export const toOutput = (returned: unknown): ToolOutput => {
  if (isOutput(returned)) return checkedOutput(returned);
  if (typeof returned === 'string') return toolOutput({ content: returned });
  if (returned === undefined) return toolOutput({ content: '(no output)' });
  try {
    const blocks = blocksIn(returned);
    if (blocks !== undefined) return toolOutput({ content: blocks.map(plainBlock) });
    if (isError(returned)) return thrownOutput(returned);
    const { json, lost } = toPlainJson(returned);
    const output = toolOutput({ content: withoutQuotes(returned, json) });
    if (lost.length > 0) losses.set(output, lost);
    return output;
  } catch (cause) {
    return failedOutput(`The tool's output cannot be converted to JSON: ${messageOf(cause)}.`);
  }
};

const checkedOutput = (output: ToolOutput): ToolOutput => {
  try {
    if (areContentBlocks(output.content)) {
      const failed: unknown = output.isError;
      return { ...output, content: output.content.map(plainBlock), isError: failed === true };
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

/** A value without JSON of its own, such as NaN or a bigint, is text, not a JSON string. */
const withoutQuotes = (returned: unknown, json: string): string =>
  typeof returned !== 'object' && json.startsWith('"') ? json.slice(1, -1) : json;

const blockFields = [
  ...['type', 'text', 'source', 'name', 'detail', 'cache'],
  ...['citations', 'separate', 'phase', 'vendorData'],
];

/** The content of a list of blocks and strings, or of an image, audio or file; a list of strings or other records is data. */
const blocksIn = (returned: unknown): readonly ContentBlock[] | undefined => {
  const isBlock = (value: unknown): value is ContentBlock =>
    isContentBlock(value) && hasOnly(value, blockFields);
  if (isBlock(returned) && returned.type !== 'text') return [returned];
  if (!Array.isArray(returned) || !returned.some(isBlock)) return undefined;
  const blocks = returned.map((item: unknown) =>
    typeof item === 'string' ? textBlock(item) : item,
  );
  return blocks.every(isBlock) ? blocks : undefined;
};

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
