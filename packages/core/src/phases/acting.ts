import { concat, from, map, mergeMap, of, toArray } from 'rxjs';
import { act$, type Acted } from '../act.js';
import {
  type AssistantMessage,
  textOf,
  type ToolMessage,
  type ToolUseBlock,
  toolUsesOf,
} from '../message.js';
import { type Phase, phase } from '../phase.js';
import type { ToolRun } from '../reply.js';
import { answerTools, end, type OpenRun, type Run, unanswered } from '../run.js';
import { says } from '../say.js';
import type { Toolkit } from '../toolkit.js';

type Needs = Parameters<typeof act$>[0];

/** Runs the tools that the model asked for, and answers it in the order that it asked. */
export const acting = (context: Needs): Phase =>
  phase((run) => {
    const asked = unanswered(run);
    if (asked === undefined) return of(run);
    const parallel = context.limits.parallel;
    return concat(
      ...batchesOf(asked, context.toolkit).map((batch) =>
        from(batch).pipe(
          mergeMap(([index, toolUse]) => act$(context, run, toolUse, index), parallel),
        ),
      ),
    ).pipe(
      toArray(),
      map((acted) => [...acted].sort((a, b) => a.index - b.index)),
      map((acted) => settle(run, asked, acted, context)),
    );
  });

type Batch = readonly (readonly [index: number, toolUse: ToolUseBlock])[];

/** Neighbours run together, in so far as none of them must run alone. */
const batchesOf = (asked: AssistantMessage, toolkit: Toolkit): readonly Batch[] => {
  const batches: [index: number, toolUse: ToolUseBlock][][] = [];
  let together = false;
  toolUsesOf(asked).forEach((toolUse, index) => {
    const alone = toolkit.find(toolUse.name)?.exclusive === true;
    if (together && !alone) batches.at(-1)?.push([index, toolUse]);
    else batches.push([[index, toolUse]]);
    together = !alone;
  });
  return batches;
};

const settle = (
  run: OpenRun,
  asked: AssistantMessage,
  acted: readonly Acted[],
  { call }: Needs,
): Run => {
  const toolUses = new Map(acted.map(({ toolUse }) => [toolUse.id, toolUse]));
  const content = asked.content.map((block) =>
    block.type === 'tool_use' ? (toolUses.get(block.id) ?? block) : block,
  );
  const results: ToolMessage = {
    id: `${asked.id}/results`,
    role: 'tool',
    content: acted.map(({ result }) => result),
  };
  const answered = answerTools(run, { ...asked, content }, results, acted.map(toToolRun));
  const final = acted.find(({ finalAnswer }) => finalAnswer);
  if (final !== undefined) {
    return end(answered, 'toolFinal', says(call, `${run.iteration}/final`, final.result.content));
  }
  return run.stopping || acted.some(({ stop }) => stop)
    ? end(answered, 'stopped', says(call, `${run.iteration}/stopped`, textOf(asked) || 'Stopped.'))
    : answered;
};

const toToolRun = ({ toolUse, result, ms }: Acted): ToolRun => ({
  name: toolUse.name,
  input: toolUse.input,
  output: textOf(result),
  isError: result.isError,
  ms,
});
