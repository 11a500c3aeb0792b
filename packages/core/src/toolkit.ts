import { misuse } from './errors.js';
import { isRecord } from './json.js';
import type { ToolChoice, ToolDeclaration } from './model.js';
import type { Tool } from './tool.js';

/** The tools of a call, each under a name of its own. */
export interface Toolkit {
  readonly tools: readonly Tool[];
  readonly names: readonly string[];
  readonly declarations: readonly ToolDeclaration[];
  find(name: string): Tool | undefined;
}

/** Gathers tools; two of one name are an error. */
export const createToolkit = (tools: readonly Tool[]): Toolkit => {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    if (!isTool(tool)) {
      throw misuse(`'tools' takes what tool({ name, description, input, run }) returns.`);
    }
    if (byName.has(tool.name)) {
      throw misuse(`Two tools are named '${tool.name}'. Rename one of them, or drop it.`);
    }
    byName.set(tool.name, tool);
  }
  return {
    tools: Object.freeze([...byName.values()]),
    names: [...byName.keys()],
    declarations: [...byName.values()].map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema,
    })),
    find: (name) => byName.get(name),
  };
};

/** No model can be made to use a tool that it is not told of. */
export const refuseUnknownChoice = (
  toolChoice: ToolChoice | undefined,
  { names }: Toolkit,
): void => {
  if (typeof toolChoice !== 'object' || names.includes(toolChoice.name)) return;
  throw misuse(
    `'toolChoice' names the tool '${toolChoice.name}'. The tools are: ${names.join(', ') || 'none'}.`,
  );
};

const isTool = (value: unknown): value is Tool =>
  isRecord(value) && typeof value['name'] === 'string' && typeof value['run$'] === 'function';
