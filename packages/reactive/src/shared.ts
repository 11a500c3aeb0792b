import { isMillraceError, MillraceError, type Tool, type ToolGroup } from '@millrace/core';
import { having } from '@millrace/core/values';

/** A rule for options that take a model. */
export const aModel = having('stream$', "a model, such as openai('gpt-5-mini')");

export const areTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

export type Entries = readonly (Tool | ToolGroup)[];

export const isGroup = (entry: Tool | ToolGroup): entry is ToolGroup => 'tools' in entry;

/** The names of tools and groups, also of inactive ones. */
export const namesIn = (entries: Entries): readonly string[] =>
  entries.flatMap((entry) =>
    isGroup(entry) ? [entry.name, ...entry.tools.map((tool) => tool.name)] : [entry.name],
  );

/** The error of a model or a source of the program, and a sentence that names the fix, if there is one. */
export const failureOf = (what: string, cause: unknown, fix = ''): MillraceError => {
  if (isMillraceError(cause) && (fix === '' || cause.code === 'config')) return cause;
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `${what} failed: ${why.replace(/\.?$/u, '.')}${fix}`;
  return new MillraceError('unknown', message, { cause });
};
