import { messageOf } from './errors.js';
import type { ContentBlock, Suspended, ToolResultBlock } from './message.js';
import { areContentBlocks, freezeResult, plainBlock, textBlock } from './message.js';
import { isRecord } from './json.js';

/** Values by name that a tool passes on to a later one, past the model. They are the tools' own, and may be anything. */
export type Extras = Readonly<Record<string, unknown>>;

/** What a tool gave in the end. */
export interface ToolOutput {
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** For the user interface only; never sent to a model. */
  readonly details?: unknown;
  /** The output is the answer: the call ends with it. */
  readonly finalAnswer?: boolean;
  /** Values for a later tool that takes them by `acceptExtras`, hidden from the model. The first call of such a tool from the next turn on gets them. */
  readonly extras?: Readonly<Record<string, unknown>>;
  /** The result is still to come: `suspend` makes such an output. */
  readonly suspended?: Suspended;
}

/** What a run of a tool emits: progress, any number of times, then its one output. */
export type ToolEmission =
  | { readonly type: 'progress'; readonly value: unknown }
  | { readonly type: 'output'; readonly output: ToolOutput };

/** What `toolOutput` is given: the text or blocks for the model, and what else the output says. */
export type ToolOutputInit = Partial<Omit<ToolOutput, 'content'>> & {
  readonly content: string | readonly ContentBlock[];
};

const brand = Symbol.for('millrace.toolOutput');

/** A tool's output that says more than a text: blocks, an error, details for the user interface, the final answer. */
export const toolOutput = ({ content, ...rest }: ToolOutputInit): ToolOutput => {
  const output = {
    isError: false,
    ...rest,
    content: typeof content === 'string' ? [textBlock(content)] : content,
    // Enumerable, so that a spread of an output is one too; JSON does not show symbols.
    [brand]: true,
  };
  return output;
};

export const failedOutput = (text: string): ToolOutput =>
  toolOutput({ content: text, isError: true });

/** Makes an output of whatever a tool returned; what JSON cannot hold becomes a failed one. */
export const toOutput = (returned: unknown): ToolOutput => {
  if (isOutput(returned)) return checkedOutput(returned);
  if (typeof returned === 'string') return toolOutput({ content: returned });
  if (returned === undefined) return toolOutput({ content: '(no output)' });
  try {
    return toolOutput({ content: asJson(returned) });
  } catch (cause) {
    return failedOutput(`The tool's output cannot be written as JSON: ${messageOf(cause)}.`);
  }
};

const checkedOutput = (output: ToolOutput): ToolOutput => {
  try {
    if (areContentBlocks(output.content)) {
      // From outside: it may be anything.
      const isError: unknown = output.isError;
      return { ...output, content: output.content.map(plainBlock), isError: isError === true };
    }
    return failedOutput(
      "The tool's output is broken: its content is neither a text nor content blocks.",
    );
  } catch (cause) {
    return failedOutput(`The tool's output is broken: ${messageOf(cause)}.`);
  }
};

export const isOutput = (value: unknown): value is ToolOutput =>
  isRecord(value) && Object.hasOwn(value, brand);

/** JSON has no word for functions and symbols: there `stringify` gives `undefined`, whatever its type says. */
const asJson = (value: unknown): string => {
  const json: unknown = JSON.stringify(value, bigintAsText);
  return typeof json === 'string' ? json : `(a ${typeof value})`;
};

const bigintAsText = (_key: string, value: unknown): unknown =>
  typeof value === 'bigint' ? String(value) : value;

export const rejectedResult = (toolUseId: string): ToolResultBlock =>
  freezeResult({
    type: 'tool_result',
    toolUseId,
    content: [textBlock('The result of this tool was rejected.')],
    isError: true,
  });

/** Cuts the text of an observation at so many characters, and adds a marker that names how many are missing. */
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
