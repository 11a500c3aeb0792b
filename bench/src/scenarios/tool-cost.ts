import { type Calls, callsJob, type Costs } from '../jobs/calls-job.js';
import { readScript } from '../mock/script.js';
import { toolAdapters } from '../runner/adapters.js';
import { doAlone } from '../runner/bench.js';
import { measureRounds } from '../runner/outcomes.js';
import { cellsOf } from '../runner/show.js';
import { one, youngCalls } from './calls-scenario.js';
import { failuresOf, rawOf, rowOf, type Scenario } from './scenario.js';

/** What one use of a tool costs, in microseconds of CPU. */
export interface ToolCost {
  /** Of those of a turn, with the turn itself. */
  readonly toolUs: number;
  /** Of one more in the same turn. */
  readonly moreUs: number;
  /** As `toolUs`, in the young calls. */
  readonly youngUs: number;
}

/** A fraction of a millisecond each; all scripts are played twice, and what is said is of the second time. */
const full: Calls = { before: 10, young: 50, between: 140, old: 1_000 };

/** (j): the way of a tool use through the loop. */
export const toolCost: Scenario = {
  letter: 'j',
  about: '16 parallel tools in one turn, without a socket: what a tool use costs',
  run: async (bench) => {
    const scripts = ['0x0-1', bench.isSmall ? '1x4-1' : '1x16-1', '1x1-1'];
    const tools = scripts.map((script) => readScript(script)?.tools ?? NaN);
    const calls = bench.isSmall ? one : full;
    const options = { scripts: [...scripts, ...scripts], ...calls };
    const outcomes = await measureRounds(
      { ...bench, adapters: toolAdapters },
      `(j) ${scripts.join(', ')}`,
      async (adapter) => {
        const { costs } = await doAlone(bench, adapter, { job: callsJob, options });
        return { ...toolCostOf(costs, tools), costs };
      },
    );
    const tool = ({ toolUs }: ToolCost): number => toolUs;
    const more = ({ moreUs }: ToolCost): number => moreUs;
    const young = ({ youngUs }: ToolCost): number => youngUs;
    return {
      tables: [
        {
          title: `(j) ${tools[1]} parallel tools in one turn, without a socket: ${scripts[1]}, CPU of a tool use`,
          about: `tool: what a call takes more than one without tools, for each of them, so that the turn is in it. more: what it takes more than one with one tool, for each further one. young: as tool, in ${youngCalls(calls)} with tools.`,
          columns: [
            { name: 'adapter', isWords: true },
            ...['young µs', 'tool µs', 'more µs'].flatMap((name) => [
              ...[{ name }, { name: 'ratio' }, { name: 'range' }],
            ]),
          ],
          rows: outcomes.map((outcome) =>
            rowOf(outcome, () =>
              [young, tool, more].flatMap((pick) => cellsOf(outcome, outcomes, pick)),
            ),
          ),
          notes: failuresOf(outcomes),
        },
      ],
      failures: failuresOf(outcomes),
      raw: { calls, outcomes: rawOf(outcomes) },
    };
  },
};

/**
 * Takes apart what calls cost without tools, with many and with a single one, of which all were made twice: only what is young is of
 * the first time.
 */
export const toolCostOf = (
  [, first, , without, many, single]: readonly Costs[],
  [none = NaN, most = NaN, least = NaN]: readonly number[],
): ToolCost => {
  const [bare = NaN, all = NaN, few = NaN] = [without, many, single].map(
    (costs) => costs?.old.cpuMs,
  );
  const us = (ms: number, uses: number): number => (ms * 1_000) / uses;
  return {
    toolUs: us(all - bare, most - none),
    moreUs: us(all - few, most - least),
    youngUs: us((first?.young.cpuMs ?? NaN) - bare, most - none),
  };
};
