import type { Malformed } from '../model.js';
import type { DialectPrompts, PromptNeeds } from './dialect.js';
import type { ToolTable } from './tool-table.js';

/** What the model is told with. */
export interface FeedbackNeeds {
  readonly prompts: DialectPrompts;
  readonly asked: PromptNeeds;
  readonly tools: ToolTable;
  readonly written: string;
}

/** What the model is told of a reply that cannot be used. It is not shown the reply: this quotes it. */
export const feedbackOf = (
  why: string,
  tool: string | undefined,
  { prompts, asked, tools, written }: FeedbackNeeds,
): Malformed => ({
  feedback: prompts.correction({
    ...asked,
    why,
    tool: tool === undefined ? undefined : tools.get(tool),
    forms: prompts.forms(asked),
    written: shortened(written.trim()),
  }),
  why,
  written,
});

/** What the model is told that has only thought so far. */
export const goOn = ({ prompts, asked }: FeedbackNeeds): Malformed => ({
  feedback: prompts.goOn({ ...asked, forms: prompts.forms(asked) }),
  why: 'The model has only thought so far.',
  isThought: true,
});

const maxQuoted = 1_500;

const shortened = (text: string): string => {
  const omitted = text.length - maxQuoted;
  if (omitted <= 0) return text;
  const head = text.slice(0, maxQuoted - 500);
  return `${head}\n[… ${omitted} characters omitted …]\n${text.slice(-500)}`;
};
