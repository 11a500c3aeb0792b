import type { Tool } from 'millrace';
import type { Tool as ListedTool } from '@modelcontextprotocol/client';
import type { Server, ToolChange } from './server-options.js';
import { inputOf, type InputOfTool, type Offered } from './tools.js';

/** Remembers which definitions of tools were first seen, over all connections to a server. */
export interface Admission {
  /** The compiled schema, or why the tool cannot be used. */
  inputOf(listed: ListedTool): InputOfTool | string;
  /** Whether it is as it was first seen or accepted. A new tool is accepted. */
  isAccepted(listed: ListedTool): boolean;
  changesIn(listed: readonly ListedTool[]): readonly ToolChange[];
  accept(listed: ListedTool): void;
  /** The tool of a definition: the same one for as long as nothing of it changes, so that waiting calls of it can run. */
  made(listed: ListedTool, offered: Offered, make: (isCurrent: () => boolean) => Tool): Tool;
  /** The tools of Millrace itself, kept in the same way. */
  further(offered: Offered, make: () => readonly Tool[]): readonly Tool[];
  /** Whether a name is that of this listed tool, or of Millrace's own. It stays with the first one that has had it. */
  owns(name: string, listedAs?: string): boolean;
}

interface Examined {
  /** The fields that the model and the program rely on. The order of keys does not matter. */
  readonly definition: string;
  readonly input: InputOfTool | string;
}

/** A server may rename its tools without end: this many times the limit of tools are remembered. */
const namesPerTool = 16;

export const createAdmission = (server: Server): Admission => {
  const accepted = new Map<string, { readonly definition: string; readonly listed: ListedTool }>();
  const examined = new WeakMap<ListedTool, Examined>();
  const latest = new Map<string, Examined>();
  const tools = new Map<string, { readonly key: string; readonly tool: Tool }>();
  const owners = new Map<string, string>();
  const further = new Map<string, readonly Tool[]>();
  const examine = (listed: ListedTool): Examined => {
    const known = examined.get(listed) ?? examinedBy(server, listed, latest.get(listed.name));
    examined.set(listed, known);
    latest.set(listed.name, known);
    return known;
  };
  const accept = (listed: ListedTool): void =>
    void accepted.set(listed.name, { definition: examine(listed).definition, listed });
  const isAccepted = (listed: ListedTool): boolean => {
    const first = accepted.get(listed.name);
    if (first !== undefined) return first.definition === examine(listed).definition;
    accept(listed);
    return true;
  };
  return {
    accept,
    isAccepted,
    made: (listed, offered, make) => {
      const { name } = listed;
      const { definition } = examine(listed);
      const key = keyOf(listed, offered?.tasks);
      const before = tools.get(name);
      if (before !== undefined && before.key === key) return before.tool;
      const tool = make(() => latest.get(name)?.definition === definition);
      if (key !== undefined) tools.set(name, { key, tool });
      return tool;
    },
    further: (offered, make) => {
      const { resources, prompts } = offered ?? {};
      const key = JSON.stringify([resources !== undefined, prompts !== undefined]);
      const all = further.get(key) ?? make();
      further.set(key, all);
      return all;
    },
    owns: (name, listedAs = '') => {
      const owner = owners.get(name) ?? listedAs;
      owners.set(name, owner);
      return owner === listedAs;
    },
    inputOf: (listed) =>
      accepted.has(listed.name) || accepted.size < namesPerTool * server.limits.tools
        ? examine(listed).input
        : 'the server has used too many names',
    changesIn: (all) =>
      all.flatMap((after) => {
        const before = accepted.get(after.name)?.listed;
        return before === undefined || isAccepted(after)
          ? []
          : [{ server: server.name, tool: after.name, before, after }];
      }),
  };
};

/** A schema is compiled again only if it changed. */
const examinedBy = (server: Server, listed: ListedTool, last: Examined | undefined): Examined => {
  const { title, description, inputSchema, annotations } = listed;
  let definition = '';
  try {
    definition = JSON.stringify([title, description, sorted(inputSchema), sorted(annotations)]);
    if (last?.definition === definition) return last;
    return { definition, input: inputOf(server, listed) };
  } catch (cause) {
    return {
      definition,
      input: cause instanceof Error ? cause.message : 'its schema cannot be used',
    };
  }
};

/** The same for equal values; undefined if one is nested too deeply. */
const keyOf = (...values: readonly unknown[]): string | undefined => {
  try {
    return JSON.stringify(sorted(values));
  } catch {
    return undefined;
  }
};

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, part]) => [key, sorted(part)]);
};
