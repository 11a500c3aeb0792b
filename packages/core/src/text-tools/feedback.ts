import type { Malformed } from '../model.js';
import type { ToolTable } from './tool-table.js';

interface Needs {
  readonly tools: ToolTable;
  readonly forms: string;
  readonly written: string;
}

const maxQuoted = 1_500;

/** What the model is told of a reply that cannot be used. It is not shown the reply: this quotes it. */
export const feedbackOf = (
  what: string,
  tool: string | undefined,
  { tools, forms, written }: Needs,
): Malformed => {
  const declared = tool === undefined ? undefined : tools.get(tool);
  const parts = [
    `Your last reply could not be used: ${what}`,
    declared === undefined
      ? ''
      : `The arguments of the tool '${declared.name}' have this JSON Schema: ${shortened(JSON.stringify(declared.inputSchema))}`,
    `Reply again, in one of these forms:\n${forms}`,
    `You wrote:\n${shortened(written.trim())}`,
  ];
  return { feedback: parts.filter((part) => part !== '').join('\n\n'), written };
};

/** What the model is told that has only thought so far. */
export const goOn = ({ forms }: Pick<Needs, 'forms'>): string =>
  `Go on: use a tool, or give your answer. Reply in one of these forms:\n${forms}`;

const shortened = (text: string): string => {
  const omitted = text.length - maxQuoted;
  if (omitted <= 0) return text;
  const head = text.slice(0, maxQuoted - 500);
  return `${head}\n[… ${omitted} characters omitted …]\n${text.slice(-500)}`;
};
