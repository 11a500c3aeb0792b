import { isSameInput, type ToolCallBlock } from '../values/message.js';
import type { Toolkit } from './toolkit.js';
import type { Extras } from '../values/tool-output.js';
import type { Tool } from './types.js';

/** A tool call with the decisions made before its batch starts. */
export interface PlannedCall {
  readonly index: number;
  readonly toolCall: ToolCallBlock;
  /** Values that earlier tools passed to it, hidden from the model. */
  readonly extras: Extras;
  /** The tool of that name. Tools added while the batch runs are for the next turn. */
  readonly tool: Tool | undefined;
  /** How often in a row the very same was asked for before. */
  readonly repeats: number;
  readonly refusal?: string;
  /** The id of an earlier tool call whose result is reused. */
  readonly sameAs?: string;
}

/** The planned batch, the extras that no tool took, and whether the limit of tool calls is reached. */
export interface Plan {
  readonly plans: readonly PlannedCall[];
  readonly extras: Extras;
  readonly isLimited: boolean;
}

/** A tool call as the model asked for it, and facts about its run. */
export interface AskedCall {
  readonly toolCall: ToolCallBlock;
  /** How often in a row the very same was asked for before. */
  readonly repeats: number;
  /** The tool failed, or could not start because of the model's arguments. */
  readonly failed: boolean;
  /** The tool, if an identical tool call may reuse the result. */
  readonly reusable: Tool | undefined;
}

interface Before {
  readonly asked: readonly AskedCall[];
  readonly extras: Extras;
  readonly executed: number;
}

export const planToolCalls = (
  { asked: before, extras: passedOn, executed }: Before,
  toolCalls: readonly ToolCallBlock[],
  toolkit: Pick<Toolkit, 'find'>,
  maxToolCalls: number,
): Plan => {
  const here: PlannedCall[] = [];
  let extras = passedOn;
  let left = maxToolCalls - executed;
  let isLimited = false;
  // The one before this message, as long as all of this message are the same as it: they are no repetition of each other,
  // because none had a result that the model could see.
  let former = before.at(-1);
  const plan = (toolCall: ToolCallBlock, index: number): PlannedCall => {
    const tool = toolkit.find(toolCall.name);
    const { refusal } = toolCall;
    if (former !== undefined && !isSame(former.toolCall, toolCall)) former = undefined;
    const repeats = former === undefined ? 0 : former.repeats + 1;
    const use = { index, toolCall, tool, extras: {}, repeats: 0 };
    if (refusal !== undefined) return { ...use, refusal };
    if (tool === undefined) return { ...use, repeats };
    const [taken, rest] = parted(extras, tool.accepts ?? []);
    if (tool.dedupe === true && taken === nothing) {
      const sameAs = sameBefore(toolCall, tool, before, here);
      if (sameAs !== undefined) return { ...use, repeats, sameAs };
    }
    if (left <= 0) {
      isLimited = true;
      return {
        ...use,
        repeats,
        refusal: `Not run: the limit of tool calls (${maxToolCalls}) is reached.`,
      };
    }
    left -= 1;
    extras = rest;
    return { ...use, extras: taken, repeats };
  };
  toolCalls.forEach((toolCall, index) => here.push(plan(toolCall, index)));
  return { plans: here, extras, isLimited };
};

/** Arguments that could not be parsed are equal only if their texts are. */
const isSame = (a: ToolCallBlock, b: ToolCallBlock): boolean =>
  a.invalidInput === b.invalidInput && isSameInput(a, b);

/** An earlier tool call whose result can be reused: it did not fail, and passed no extras on. */
const sameBefore = (
  toolCall: ToolCallBlock,
  tool: Tool,
  before: readonly AskedCall[],
  here: readonly PlannedCall[],
): string | undefined => {
  if (toolCall.invalidInput !== undefined) return undefined;
  const earlier = before.find((use) => use.reusable === tool && isSame(use.toolCall, toolCall));
  if (earlier !== undefined) return earlier.toolCall.id;
  const isTwin = (use: PlannedCall): boolean =>
    use.refusal === undefined && use.sameAs === undefined && isSame(use.toolCall, toolCall);
  return here.find(isTwin)?.toolCall.id;
};

const nothing: Extras = {};

const parted = (
  extras: Extras,
  accepts: readonly string[],
): readonly [taken: Extras, rest: Extras] => {
  if (!accepts.some((name) => Object.hasOwn(extras, name))) return [nothing, extras];
  const entries = Object.entries(extras);
  const isTaken = ([name]: readonly [string, unknown]): boolean => accepts.includes(name);
  return [
    Object.fromEntries(entries.filter(isTaken)),
    Object.fromEntries(entries.filter((entry) => !isTaken(entry))),
  ];
};

/** Groups tool calls that run in parallel: neighbours, unless one is exclusive. Skips those that reuse a result. */
export const groupsOf = (plans: readonly PlannedCall[]): readonly (readonly PlannedCall[])[] => {
  const batches: PlannedCall[][] = [];
  let together = false;
  for (const use of plans) {
    if (use.sameAs !== undefined) continue;
    const alone = use.tool?.exclusive === true;
    if (together && !alone) batches.at(-1)?.push(use);
    else batches.push([use]);
    together = !alone;
  }
  return batches;
};
