import { of } from 'rxjs';
import { checkOptions } from '../options.js';
import { phase, type PhaseFactory } from '../phase.js';
import { askBeside$, type AskNeeds } from './ask-beside.js';
import { type PlanningOptions, planningRules, titleOf } from './planning-options.js';
import { analyseTaskPrompt } from './planning-prompt.js';

/**
 * Makes a phase, to be put before `reasoning`, that lets the model look at the task before the first turn: one request. What it says is shown in
 * every request of the call as `[Task Analysis]`, and never stored.
 */
export const analyseTask = (options: PlanningOptions = {}): PhaseFactory => {
  checkOptions('analyseTask()', options, planningRules);
  const { name = 'analyseTask' } = options;
  const title = titleOf('Task Analysis', name, 'analyseTask');
  const aside = { prompt: analyseTaskPrompt, ...options, name, title };
  const analysing = (context: AskNeeds) =>
    phase((run) => (run.iteration > 0 ? of(run) : askBeside$(context, run, aside)));
  return analysing;
};
