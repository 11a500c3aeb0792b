import { parseArgs } from 'node:util';
import { scenarios } from '../scenarios/scenarios.js';
import type { Scenario } from '../scenarios/scenario.js';
import { type AdapterRef, ownAdapters } from './adapters.js';
import { nodeProgram, type NodeProgram, thisNode } from './node-program.js';
import { UsageError } from './usage-error.js';

/** What the command line asks for. */
export interface Command {
  readonly isHelp: boolean;
  readonly scenarios: readonly Scenario[];
  readonly adapters: readonly AdapterRef[];
  readonly rounds: number;
  readonly isSmall: boolean;
  /** One table for each. */
  readonly nodes: readonly NodeProgram[];
  /** The file for everything that was measured. */
  readonly json: string | undefined;
}

/** Reads the command line, or throws a `UsageError` that says what there is. */
export const readCommand = (args: readonly string[], peers: readonly AdapterRef[]): Command => {
  const { values } = parsed(args);
  const isSmall = values.small ?? false;
  return {
    isHelp: values.help ?? false,
    scenarios:
      values.only === undefined
        ? scenarios
        : chosen('scenario', scenarios, values.only, ({ letter }) => letter),
    adapters: withFloors(adaptersOf(values, peers), peers),
    rounds: roundsOf(values.rounds, isSmall),
    isSmall,
    nodes: values.node === undefined ? [thisNode] : values.node.map(nodeProgram),
    json: values.json,
  };
};

const parsed = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        only: { type: 'string' },
        adapters: { type: 'string' },
        peers: { type: 'boolean' },
        rounds: { type: 'string' },
        small: { type: 'boolean' },
        node: { type: 'string', multiple: true },
        json: { type: 'string' },
      },
    });
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
};

const adaptersOf = (
  {
    adapters,
    peers: isWithPeers = false,
  }: { readonly adapters?: string; readonly peers?: boolean },
  peers: readonly AdapterRef[],
): readonly AdapterRef[] => {
  if (isWithPeers && peers.length === 0) {
    throw new UsageError('No peer is installed: run `npm run bench:peers` first.');
  }
  const named =
    adapters === undefined
      ? ownAdapters
      : chosen('adapter', [...ownAdapters, ...peers], adapters, ({ name }) => name, toInstall);
  return [...new Set([...named, ...(isWithPeers ? peers : [])])];
};

const toInstall = ' Peers are there once `npm run bench:peers` has installed them.';

/** Nothing is measured without what it is measured against. */
const withFloors = (
  adapters: readonly AdapterRef[],
  peers: readonly AdapterRef[],
): readonly AdapterRef[] => {
  const names = new Set(adapters.flatMap(({ name, floor }) => [name, floor]));
  return [...ownAdapters, ...peers].filter(({ name }) => names.has(name));
};

const chosen = <T>(
  what: string,
  all: readonly T[],
  list: string,
  nameOf: (one: T) => string,
  more = '',
): readonly T[] => {
  const names = list.split(',').map((name) => name.trim());
  const known = all.map(nameOf);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new UsageError(
      `There is no ${what} '${unknown.join("', '")}'. There are: ${known.join(', ')}.${more}`,
    );
  }
  return all.filter((one) => names.includes(nameOf(one)));
};

const roundsOf = (text: string | undefined, isSmall: boolean): number => {
  if (text === undefined) return isSmall ? 1 : 5;
  const rounds = Number(text);
  if (!Number.isInteger(rounds) || rounds < 1) {
    throw new UsageError(`--rounds is a whole number from 1, not '${text}'.`);
  }
  return rounds;
};
