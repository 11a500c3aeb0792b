import { isRecord } from '../json.js';
import type { ToolDeclaration } from '../model.js';

export type ToolTable = ReadonlyMap<string, ToolDeclaration>;

/** Lists tools by their names. */
export const toolTable = (tools: readonly ToolDeclaration[]): ToolTable =>
  new Map(tools.map((tool) => [tool.name, tool]));

export const parameterOf = (
  tool: ToolDeclaration | undefined,
  name: string,
): Readonly<Record<string, unknown>> | undefined => {
  const properties = tool?.inputSchema['properties'];
  if (!isRecord(properties) || !Object.hasOwn(properties, name)) return undefined;
  const schema = properties[name];
  return isRecord(schema) ? schema : undefined;
};

export const onlyText = (tool: ToolDeclaration | undefined): string | undefined => {
  const properties = tool?.inputSchema['properties'];
  const [name, second] = isRecord(properties) ? Object.keys(properties) : [];
  if (name === undefined || second !== undefined) return undefined;
  return parameterOf(tool, name)?.['type'] === 'string' ? name : undefined;
};
