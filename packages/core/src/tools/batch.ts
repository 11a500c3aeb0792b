import equal from 'fast-deep-equal';
import type { ToolUseBlock } from '../message.js';
import type { ToolRun } from '../reply.js';
import type { OpenRun } from '../run.js';
import type { Toolkit } from '../toolkit.js';
import type { Extras } from './extras.js';

/** A tool use with all that is decided on it before its batch begins, in the order in which the model asked. */
export interface Planned {
  readonly index: number;
  readonly toolUse: ToolUseBlock;
  /** Values that earlier tools have passed on to it, past the model. */
  readonly extras: Extras;
  /** Whether there is such a tool. One that comes while the batch runs is for the next turn. */
  readonly isKnown: boolean;
  /** How often in a row the very same was asked for before. */
  readonly repeats: number;
  /** Why it is not run. */
  readonly refusal?: string;
  /** The id of an earlier use, whose result answers this one, too. */
  readonly sameAs?: string;
}

/** What is planned, and what nobody has taken of the extras. */
export interface Plan {
  readonly uses: readonly Planned[];
  readonly extras: Extras;
}

/** Decides on a batch of tool uses, one after the other. */
export const planned = (
  {
    toolRuns,
    asked: before,
    extras: passedOn,
    executed,
  }: Pick<OpenRun, 'toolRuns' | 'asked' | 'extras' | 'executed'>,
  asked: readonly ToolUseBlock[],
  toolkit: Pick<Toolkit, 'find'>,
  maxToolCalls: number,
): Plan => {
  const earlier = before.map(({ id, name, input }, index): Use => {
    const { isError = false } = toolRuns[index] ?? {};
    return { toolUseId: id, name, input, isError };
  });
  let extras = passedOn;
  let left = maxToolCalls - executed;
  const uses = asked.map((toolUse, index): Planned => {
    const { id, name, input } = toolUse;
    const tool = toolkit.find(name);
    const isKnown = tool !== undefined;
    const { refusal: refused } = toolUse;
    if (refused !== undefined) {
      return { index, toolUse, isKnown, extras: {}, repeats: 0, refusal: refused };
    }
    const repeats = repeatsOf(toolUse, earlier);
    const same = tool?.dedupe === true ? earlier.find((use) => isSame(use, toolUse)) : undefined;
    earlier.push({ toolUseId: id, name, input });
    if (same !== undefined)
      return { index, toolUse, isKnown, extras: {}, repeats, sameAs: same.toolUseId };
    if (tool === undefined) return { index, toolUse, isKnown, extras: {}, repeats };
    if (left <= 0) {
      const refusal = `Not run: the limit of tool calls (${maxToolCalls}) is reached.`;
      return { index, toolUse, isKnown, extras: {}, repeats, refusal };
    }
    left -= 1;
    const [taken, rest] = parted(extras, tool.accepts ?? []);
    extras = rest;
    return { index, toolUse, isKnown, extras: taken, repeats };
  });
  return { uses, extras };
};

type Use = Pick<ToolRun, 'toolUseId' | 'name' | 'input'> & Partial<Pick<ToolRun, 'isError'>>;

/** What has failed may succeed the next time. */
const isSame = ({ name, input, isError = false }: Use, toolUse: ToolUseBlock): boolean =>
  !isError && name === toolUse.name && equal(input, toolUse.input);

const repeatsOf = (toolUse: ToolUseBlock, earlier: readonly Use[]): number => {
  const differs = earlier.findLastIndex(
    ({ name, input }) => name !== toolUse.name || !equal(input, toolUse.input),
  );
  return earlier.length - 1 - differs;
};

const parted = (
  extras: Extras,
  accepts: readonly string[],
): readonly [taken: Extras, rest: Extras] => {
  if (!accepts.some((name) => Object.hasOwn(extras, name))) return [{}, extras];
  const entries = Object.entries(extras);
  const isTaken = ([name]: readonly [string, unknown]): boolean => accepts.includes(name);
  return [
    Object.fromEntries(entries.filter(isTaken)),
    Object.fromEntries(entries.filter((entry) => !isTaken(entry))),
  ];
};
