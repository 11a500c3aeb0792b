import { type Agent, type AgentOptions, createAgent } from '@millrace/core';
import { findWorkspace } from './find-workspace.js';

/** The agent of the command. */
export interface Assistant {
  readonly agent: Agent;
  /** What it has to do without. */
  readonly warnings: readonly string[];
  /** A question that shows what it can do. */
  readonly sample: string;
}

/** What events and runs call the agent. */
export const assistantName = 'millrace';

/** What the agent works with. */
export interface AssistantOptions extends Pick<AgentOptions, 'model' | 'use'> {
  /** Files below it may be read. */
  readonly directory: string;
  /** Finds the directory whose docs are searched. Default: `findWorkspace`. */
  readonly findDocs?: (directory: string) => Promise<string | undefined>;
}

/** Makes the agent: it calculates, tells the time, searches Millrace's own docs, and reads files. */
export const createAssistant = async ({
  directory,
  findDocs = findWorkspace,
  ...options
}: AssistantOptions): Promise<Assistant> => {
  const [{ calculator, clock, markdownFiles, readFile, searchDocuments }, docs] = await Promise.all(
    [import('@millrace/tools'), findDocs(directory)],
  );
  const tools = [calculator(), clock(), readFile({ root: directory })];
  const agentWith = (...more: typeof tools) =>
    createAgent({ ...options, name: assistantName, tools: [...tools, ...more] });
  if (docs === undefined) {
    const warning = 'The docs of Millrace are not here, so the agent cannot search them.';
    return { agent: agentWith(), warnings: [warning], sample: `${sample}?` };
  }
  const search = searchDocuments({
    load: markdownFiles(docs, { exclude: isNoProse }),
    description: aboutDocs,
  });
  return { agent: agentWith(search), warnings: [], sample: `${sample}, ${sampleSearch}?` };
};

const sample = 'What is 17.5% of 2349, what time is it in Tokyo';
const sampleSearch = 'and how does backpressure work';

/** Reports that were generated, and what tests write or expect. */
const isNoProse = (path: string): boolean => /\.api\.md$|(?:^|\/)(?:temp|expected)$/.test(path);

const aboutDocs =
  'Searches the documentation of Millrace (its README, architecture and guides: agents, streams, events, tools, ' +
  'interceptors, backpressure) for words and gives the passages that fit best, each with its file.';
