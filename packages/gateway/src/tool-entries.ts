import type { Tool, ToolGroup } from 'millrace';

export const areTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

export type Entries = readonly (Tool | ToolGroup)[];

export const isGroup = (entry: Tool | ToolGroup): entry is ToolGroup => 'tools' in entry;

/** The names of tools and groups, also of inactive ones. */
export const namesIn = (entries: Entries): readonly string[] =>
  entries.flatMap((entry) =>
    isGroup(entry) ? [entry.name, ...entry.tools.map((tool) => tool.name)] : [entry.name],
  );
