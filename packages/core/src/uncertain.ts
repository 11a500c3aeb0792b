import type { Context } from './context.js';
import type { Decision } from './decide-tool.js';
import { noMemory } from './memory.js';
import type { OpenRun } from './run.js';
import { createToolRunning, type ToolRunning, without } from './run-tool.js';
import { failedOutput, type ToolOutput } from './tool-output.js';
import type { Planned } from './tools/batch.js';
import { suspend } from './tools/suspend.js';

type Needs = Parameters<typeof createToolRunning>[0] & Pick<Context, 'memory'>;

/** Answers a tool use that had begun when its call was broken off. Nobody knows whether it has done what it does: no tool is run twice in silence. */
export const createUncertain = (
  context: Needs,
  run: OpenRun,
  decision: Decision,
  plan: Planned,
): ToolRunning => {
  const { hooks, limits, memory, toolkit } = context;
  const { toolUse } = decision;
  const tool = toolkit.find(toolUse.name);
  // Nobody could bring the result to a call that nothing remembers, nor run a tool that has been taken away.
  const isVain = limits.onUncertain === 'ask' ? memory === noMemory : tool === undefined;
  const wanted = isVain ? 'report' : limits.onUncertain;
  const then = tool?.idempotent === true ? 'rerun' : wanted;
  hooks.report(run.iteration, { type: 'uncertain', toolUse, then });
  if (then === 'rerun') return createToolRunning(context, run, decision, plan);
  const output: ToolOutput =
    then === 'ask' ? suspend({ uncertain: true, tool: toolUse.name }) : failedOutput(unknownEnd);
  return without(decision, output, { executed: true, failed: false });
};

const unknownEnd =
  'It is not known whether this has run: the process ended before its result was written down. Find out before you ask for it again.';
