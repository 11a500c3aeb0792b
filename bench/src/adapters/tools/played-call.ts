import { weatherOf } from '../../lookup.js';
import { deltasOf } from '../../mock/answer.js';
import type { ToolResult } from '../../mock/said.js';
import { readScript } from '../../mock/script.js';
import { type ToolCall, toolCallsOf } from '../../mock/tool-call.js';

/** What a model says in a call of one script, made once: nothing of it is made while a call is measured. */
export interface PlayedCall {
  /** What the first turn asks for. None: the first turn is the answer. */
  readonly uses: readonly ToolCall[];
  readonly deltas: readonly string[];
  /** Refuses results of tools that are not all that were asked for, in their order, with what the tool says. */
  readonly check: (results: readonly ToolResult[]) => void;
}

/** Reads a script of at most one turn with tools. */
export const playedCall = (name: string): PlayedCall => {
  const script = readScript(name);
  if (script === undefined || script.turns > 1) {
    throw new Error(
      `A model in the process plays one turn of tools, such as 1x16-1, not '${name}'.`,
    );
  }
  const uses = toolCallsOf(1, script.turns * script.tools);
  const wanted = uses.map(({ id }, day): ToolResult => ({ id, text: weatherOf('Oslo', day) }));
  return {
    uses,
    deltas: deltasOf(script.deltas),
    check: (results) => {
      const isAsWanted =
        results.length === wanted.length &&
        wanted.every(({ id, text }, at) => results[at]?.id === id && results[at].text === text);
      if (!isAsWanted) throw new Error(`These are not the results: ${JSON.stringify(results)}`);
    },
  };
};

/** Makes each call of a script once. */
export const playedCalls = (): ((name: string) => PlayedCall) => {
  const made = new Map<string, PlayedCall>();
  return (name) => {
    const call = made.get(name) ?? playedCall(name);
    made.set(name, call);
    return call;
  };
};
