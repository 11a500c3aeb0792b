import { readFile as readText } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Agent, type AgentOptions, createAgent, type Tool } from 'millrace';

/** The agent of the command. */
export interface Assistant {
  readonly agent: Agent;
  /** Missing capabilities. */
  readonly warnings: readonly string[];
  /** A question that shows its capabilities. */
  readonly sample: string;
}

/** The name of the agent in events and runs. */
export const assistantName = 'millrace';

export interface AssistantOptions extends Pick<AgentOptions, 'model' | 'use'> {
  /** The agent may read files in this directory. */
  readonly directory: string;
  /** Finds the directory of the docs to search. Default: `findWorkspace`. */
  readonly findDocs?: (directory: string) => Promise<string | undefined>;
}

/** Creates an agent with the tools of the assistant. */
export const createAssistant = async ({
  directory,
  findDocs = findWorkspace,
  ...options
}: AssistantOptions): Promise<Assistant> => {
  const { tools, ...about } = await assistantTools({ directory, findDocs });
  return { agent: createAgent({ ...options, name: assistantName, tools }), ...about };
};

/** Creates a calculator, a clock, a file reader, and a search of Millrace's own docs if it finds them. */
export const assistantTools = async ({
  directory,
  findDocs = findWorkspace,
}: Pick<AssistantOptions, 'directory' | 'findDocs'>): Promise<
  Pick<Assistant, 'warnings' | 'sample'> & { readonly tools: readonly Tool[] }
> => {
  const [{ calculator, clock, markdownFiles, readFile, searchDocuments }, docs] = await Promise.all(
    [import('@millrace/tools'), findDocs(directory)],
  );
  const tools = [calculator(), clock(), readFile({ root: directory })];
  if (docs === undefined) {
    const warning = 'The agent cannot search the Millrace docs, as they are not installed here.';
    return { tools, warnings: [warning], sample: `${sample}?` };
  }
  const search = searchDocuments({
    load: markdownFiles(docs, { exclude: isNoProse }),
    description: aboutDocs,
  });
  return { tools: [...tools, search], warnings: [], sample: `${sample}, ${sampleSearch}?` };
};

const sample = 'What is 17.5% of 2349, what time is it in Tokyo';
const sampleSearch = 'and how does backpressure work';

/** Generated reports, suites of tests and their files, and outdated pages. */
const isNoProse = (path: string): boolean =>
  /\.api\.md$|(?:^|\/)(?:conformance|expected|history|temp)$/.test(path);

const aboutDocs =
  'Searches the documentation of Millrace (its README, architecture and guides: agents, streams, events, tools, ' +
  'interceptors, backpressure) for words and returns the best passages, each with its file.';

/** Finds the root of Millrace's own workspace above a directory or above this package; undefined if it finds none. */
export const findWorkspace = async (directory: string): Promise<string | undefined> =>
  (await workspaceAbove(directory)) ??
  (await workspaceAbove(dirname(fileURLToPath(import.meta.url))));

const workspaceAbove = async (directory: string): Promise<string | undefined> => {
  if (await isWorkspace(directory)) return directory;
  const parent = dirname(directory);
  return parent === directory ? undefined : workspaceAbove(parent);
};

const isWorkspace = async (directory: string): Promise<boolean> => {
  try {
    const manifest: unknown = JSON.parse(await readText(join(directory, 'package.json'), 'utf8'));
    return Reflect.get(Object(manifest), 'name') === 'millrace-workspace';
  } catch {
    return false;
  }
};
