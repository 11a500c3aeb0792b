import type { ToolResultBlock } from '../message.js';
import type { ToolChoice, ToolDeclaration } from '../model.js';
import type { JsonSchema } from '../schema/json-schema.js';
import type { Label } from './peek.js';

/** A use of a tool as a dialect writes it back. */
export interface WrittenUse {
  readonly name: string;
  /** The JSON of its arguments, or what the model wrote instead. */
  readonly json: string;
}

/** A result of a tool as a dialect writes it back. */
export interface WrittenResult extends Pick<ToolResultBlock, 'isError'> {
  readonly tool: string;
  readonly text: string;
  /** There is more than one result in the message. */
  readonly isOneOfMany: boolean;
}

/** How a dialect writes what has been said, so that a model sees the form that it is to keep to. */
export interface DialectWriter {
  /** Uses of tools, with the thought before them. */
  readonly uses: (thought: string, uses: readonly WrittenUse[]) => string;
  readonly answer: (thought: string, text: string) => string;
  readonly thought: (thought: string) => string;
  readonly result: (result: WrittenResult) => string;
}

/** What the parts of a prompt are made of. */
export interface PromptNeeds {
  readonly tools: readonly ToolDeclaration[];
  readonly toolChoice: ToolChoice | undefined;
  readonly outputSchema: JsonSchema | undefined;
}

/** A part of a prompt. An empty one is left out. */
export type PromptPart = (needs: PromptNeeds) => string;

/** The parts of the prompt that teaches a dialect, in their order. */
export interface DialectPrompts {
  /** How a reply is written. */
  readonly format: PromptPart;
  /** Which tools there are. */
  readonly tools: PromptPart;
  /** Whether a tool must be used, or none may. */
  readonly choice: PromptPart;
  /** What the answer must be. */
  readonly output: PromptPart;
  /** The forms of a reply in a few lines: they follow what is said of a reply that could not be read. */
  readonly forms: PromptPart;
  /** What is said of a reply that cannot be used. The model is not shown the reply itself. */
  readonly correction: (needs: CorrectionNeeds) => string;
  /** What is said to a model that has only thought so far. */
  readonly goOn: (needs: PromptNeeds & Pick<CorrectionNeeds, 'forms'>) => string;
}

/** What a correction is made of. */
export interface CorrectionNeeds extends PromptNeeds {
  /** What was wrong, in English. */
  readonly why: string;
  /** The tool that the reply names, where that can be read. */
  readonly tool: ToolDeclaration | undefined;
  /** The part `forms`. */
  readonly forms: string;
  /** What the model wrote, shortened where it is long. */
  readonly written: string;
}

/** Words for labels, in any case. */
export type LabelTranslations = Readonly<Partial<Record<Label, readonly string[]>>>;

/** What may be told otherwise of every dialect. */
export interface DialectOptions {
  /** Prose is a fault, and not the answer. Default: false. */
  readonly strict?: boolean;
  /** Parts of the prompt that are told in other words. */
  readonly prompts?: Partial<DialectPrompts>;
  /** Translations of labels, such as `{ thought: ['Gedanke'] }`. They are read; to write them, replace `write` as well. */
  readonly words?: LabelTranslations;
  /** The whole prompt, instead of its parts one below the other. */
  readonly prompt?: (parts: readonly string[], needs: PromptNeeds) => string;
}

/** A text format for tool calls, for models without native ones: what is special about it, as data and small functions. */
export interface Dialect {
  readonly name: string;
  readonly strict: boolean;
  /** Uses of tools in one reply that are run; the others are refused. */
  readonly maxUses: number;
  /** Labels that begin a line. */
  readonly labels: readonly Label[];
  /** Translations of the labels, for prompts in another language. */
  readonly words?: LabelTranslations | undefined;
  /** Which JSON without a label is an action: at the start of the reply (`whole`), there or on a line after a thought if its first key belongs to an action (`keyed`), or none. */
  readonly bareJson: 'whole' | 'keyed' | 'none';
  /** An action is a list, and prose before it is a thought. */
  readonly isList: boolean;
  /** Names that stand for the final answer, where no tool has them. */
  readonly completions: readonly string[];
  /** Where the model is to stop by itself. */
  readonly stopSequences: readonly string[];
  readonly prompts: DialectPrompts;
  readonly prompt: (parts: readonly string[], needs: PromptNeeds) => string;
  readonly write: DialectWriter;
}
