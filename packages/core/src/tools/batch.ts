import equal from 'fast-deep-equal';
import type { ToolUseBlock } from '../values/message.js';
import type { Toolkit } from './toolkit.js';
import type { Extras } from '../values/tool-output.js';
import type { Tool } from './types.js';

/** A tool use with all that is decided on it before its batch begins, in the order in which the model asked. */
export interface Planned {
  readonly index: number;
  readonly toolUse: ToolUseBlock;
  /** Values that earlier tools have passed on to it, past the model. */
  readonly extras: Extras;
  /** The tool there is of that name. One that comes while the batch runs is for the next turn. */
  readonly tool: Tool | undefined;
  /** How often in a row the very same was asked for before. */
  readonly repeats: number;
  /** Why it is not run. */
  readonly refusal?: string;
  /** The id of an earlier use, whose result answers this one, too. */
  readonly sameAs?: string;
}

/** What is planned, what nobody has taken of the extras, and whether the limit of tool calls has been reached. */
export interface Plan {
  readonly uses: readonly Planned[];
  readonly extras: Extras;
  readonly isLimited: boolean;
}

/** A use that was asked for, as the model did, and what is remembered of its run. */
export interface Use {
  readonly toolUse: ToolUseBlock;
  /** How often in a row the very same was asked for before. */
  readonly repeats: number;
  /** The run failed, or could not begin for what the model said. */
  readonly failed: boolean;
  /** The tool whose result this is, where the result answers another use of the kind as well. */
  readonly reusable: Tool | undefined;
}

interface Before {
  readonly uses: readonly Use[];
  readonly extras: Extras;
  readonly executed: number;
}

/** Decides on a batch of tool uses, one after the other. */
export const planned = (
  { uses: before, extras: passedOn, executed }: Before,
  asked: readonly ToolUseBlock[],
  toolkit: Pick<Toolkit, 'find'>,
  maxToolCalls: number,
): Plan => {
  const here: Planned[] = [];
  let extras = passedOn;
  let left = maxToolCalls - executed;
  let isLimited = false;
  const plan = (toolUse: ToolUseBlock, index: number): Planned => {
    const tool = toolkit.find(toolUse.name);
    const { refusal } = toolUse;
    const use = { index, toolUse, tool, extras: {}, repeats: 0 };
    if (refusal !== undefined) return { ...use, refusal };
    const former = here.at(-1) ?? before.at(-1);
    const isAgain = former !== undefined && isSame(former.toolUse, toolUse);
    const repeats = isAgain ? former.repeats + 1 : 0;
    if (tool === undefined) return { ...use, repeats };
    const [taken, rest] = parted(extras, tool.accepts ?? []);
    if (tool.dedupe === true && taken === nothing) {
      const sameAs = sameBefore(toolUse, tool, before, here);
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
  asked.forEach((toolUse, index) => here.push(plan(toolUse, index)));
  return { uses: here, extras, isLimited };
};

/** Arguments that could not be read are no input: they are the same only where their texts are. */
const isSame = (a: ToolUseBlock, b: ToolUseBlock): boolean =>
  a.name === b.name && a.invalidInput === b.invalidInput && equal(a.input, b.input);

/** The use whose result answers this one: what has failed may succeed the next time, and what passes values on has more to give than its result. */
const sameBefore = (
  toolUse: ToolUseBlock,
  tool: Tool,
  before: readonly Use[],
  here: readonly Planned[],
): string | undefined => {
  if (toolUse.invalidInput !== undefined) return undefined;
  const earlier = before.find((use) => use.reusable === tool && isSame(use.toolUse, toolUse));
  if (earlier !== undefined) return earlier.toolUse.id;
  const isTwin = (use: Planned): boolean =>
    use.refusal === undefined && use.sameAs === undefined && isSame(use.toolUse, toolUse);
  return here.find(isTwin)?.toolUse.id;
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
