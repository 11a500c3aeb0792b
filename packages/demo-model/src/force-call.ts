import type { ToolChoice } from '@millrace/core';
import { chooseTool } from './choose-tool.js';
import { fillArguments, insist } from './fill-arguments.js';
import type { Toolbox } from './read-tools.js';
import type { Call } from './replay.js';

/** Tells whether a caller wants a tool to be used, whatever the question is. */
export const insists = (choice: ToolChoice | undefined): boolean =>
  choice === 'required' || typeof choice === 'object';

/**
 * Finds a call for a caller who insists on one: of the tool that fits best, else of the first whose arguments
 * the text and the declaration give. Where no tool has them all there is none, as arguments are never invented.
 */
export const forceCall = (question: string, toolbox: Toolbox): Call | undefined => {
  const best = chooseTool(question, toolbox)?.tool;
  const tools = best === undefined ? toolbox.tools : [best, ...toolbox.tools];
  for (const { name, slots, ownStems } of tools.slice(0, mostTried)) {
    const filling = insist(fillArguments(slots, question, { ownStems }), question);
    const [[input] = []] = filling.calls;
    if (input !== undefined && filling.missing.length === 0 && !filling.waits) {
      return { name, input };
    }
  }
  return undefined;
};

const mostTried = 40;
