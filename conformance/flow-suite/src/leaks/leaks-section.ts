import { inChild } from '../in-child.js';
import type { Section } from '../table.js';
import { leftOver } from './left-over.js';
import type { Leaks, LeaksOptions } from './measure-leaks.js';
import { readLeaks } from './read-leaks.js';

/** How many calls are made, of each kind of models. */
export type LeaksSectionOptions = Readonly<Record<Kind, CaseOptions>>;

/** What models answer from. */
type Kind = 'scripted' | 'http';

/** How leaks of one kind are looked for. */
export interface CaseOptions extends LeaksOptions {
  /**
   * What the memory may grow by for each 1,000 calls, in kilobytes. One subscription that every tenth call leaves behind
   * makes some 60.
   */
  readonly mostKb: number;
}

const kinds: readonly Kind[] = ['scripted', 'http'];

const header = [
  'models',
  'calls',
  'kB per 1,000',
  'resources',
  'listeners',
  'at most',
  'subscriptions',
  'of',
  'sessions',
  'of',
];

/** Without them the heap grows for thousands of calls by code that is compiled once more and better. */
const steadyHeap = ['--no-opt', '--no-sparkplug', '--no-flush-bytecode'];

/** Looks for leaks, for each kind of models in a process of its own. */
export const leaksSection = async (options: LeaksSectionOptions): Promise<Section> => {
  const found = await Promise.all(
    kinds.map(async (kind) => ({ kind, leaks: await inOwnProcess(kind, options[kind]) })),
  );
  return {
    title: 'What calls leave behind',
    header,
    rows: found.map(({ kind, leaks }) => rowOf(kind, leaks)),
    wrongs: found.flatMap(({ kind, leaks }) =>
      leftOver(leaks, options[kind].mostKb).map((wrong) => `${kind}: ${wrong}`),
    ),
  };
};

const inOwnProcess = (kind: string, { perBlock, blocks }: LeaksOptions): Promise<Leaks> =>
  inChild({
    module: new URL('../../dist/leaks/process.js', import.meta.url),
    args: [kind, String(perBlock), String(blocks)],
    flags: steadyHeap,
    read: readLeaks,
  });

const rowOf = (
  kind: string,
  { calls, growthKb, resources, listeners, subscriptions, sessions }: Leaks,
): readonly string[] => [
  kind,
  calls.toFixed(),
  growthKb.toFixed(1),
  resources.length.toFixed(),
  ...[listeners.left, listeners.most].map(String),
  ...[subscriptions.left, subscriptions.all].map(String),
  ...[sessions.left, sessions.all].map(String),
];
