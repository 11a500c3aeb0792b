import { writeFileSync } from 'node:fs';
import { formatTable } from '../table.js';
import type { Scenario } from '../scenarios/scenario.js';
import type { Bench } from './bench.js';
import { isAtLeast } from './is-at-least.js';
import { machine } from './machine.js';
import type { NodeProgram } from './node-program.js';
import type { Command } from './read-command.js';
import { versionsOf } from './versions.js';

/** Measures what is asked for: tables on stdout, progress on stderr. Resolves to the exit code. */
export const runCommand = async (command: Command): Promise<number> => {
  const { nodes, json } = command;
  const { date, cpu, cores, memoryGb } = machine();
  console.log(`${date}, ${cpu}, ${cores} cores, ${memoryGb} GB`);
  const results = [];
  for (const node of nodes) results.push(...(await runOn(node, command)));
  if (json !== undefined) {
    const versions = versionsOf(command.adapters);
    const { rounds, isSmall } = command;
    const all = { machine: machine(), versions, rounds, isSmall, results };
    writeFileSync(json, `${JSON.stringify(all, undefined, 2)}\n`);
  }
  return results.some(({ failures }) => failures.length > 0) ? 1 : 0;
};

const runOn = async (node: NodeProgram, command: Command) => {
  const { scenarios, rounds, isSmall } = command;
  const isRunnable = ({ wantsNode }: Command['adapters'][number]): boolean =>
    wantsNode === undefined || isAtLeast(node.version, wantsNode);
  const left = command.adapters.filter((adapter) => !isRunnable(adapter));
  console.log(
    `\nNode ${node.version}, rounds: ${rounds}${isSmall ? ', small: the numbers say nothing' : ''}`,
  );
  for (const { name, wantsNode } of left)
    console.log(`${name} is left out: it needs Node ${wantsNode}.`);
  const bench: Bench = {
    adapters: command.adapters.filter(isRunnable),
    rounds,
    isSmall,
    node,
    onProgress: (what) => console.error(`  ${what}`),
  };
  const results = [];
  for (const scenario of scenarios) results.push(await runScenario(scenario, bench));
  return results;
};

const runScenario = async ({ letter, run }: Scenario, bench: Bench) => {
  const startedAt = performance.now();
  console.error(`(${letter}) …`);
  const { tables, failures, raw } = await run(bench);
  console.error(`(${letter}) … ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
  for (const table of tables) console.log(`\n${formatTable(table)}`);
  return { scenario: letter, node: bench.node.version, tables, failures, raw };
};
