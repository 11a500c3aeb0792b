import { of } from 'rxjs';
import { checkOptions, type Rule } from '../options.js';
import { phase, type PhaseFactory } from '../phase.js';
import { type OpenRun, runKey } from '../run.js';
import { askBeside$, type AskNeeds } from './ask-beside.js';
import { type PlanningOptions, planningRules, titleOf } from './planning-options.js';
import { reflectPrompt } from './planning-prompt.js';

/** Behind which turns the model reflects: all, those in which a tool has failed, every so many, or those that a function picks. */
export type ReflectWhen = 'always' | 'onError' | number | ((run: OpenRun) => boolean);

/** How the model reflects. */
export interface ReflectOptions extends PlanningOptions {
  /** Default: `always`. */
  readonly when?: ReflectWhen;
}

/**
 * Makes a phase, to be put behind `acting`, that lets the model think about what its tools have given: one request each time. What it says is
 * shown as `[Reflection]` until it reflects again, and never stored. A turn without tools is passed over.
 */
export const reflect = (options: ReflectOptions = {}): PhaseFactory => {
  checkOptions('reflect()', options, { ...planningRules, when: isWhen });
  const { when = 'always', name = 'reflect', ...asked } = options;
  const title = titleOf('Reflection', name, 'reflect');
  const aside = { prompt: reflectPrompt, ...asked, name, title };
  const isDue = dueWhen(when);
  // A turn that only corrects the model brings no new results.
  const latest = runKey<string | undefined>(`${name}/results`, undefined);
  const reflecting = (context: AskNeeds) =>
    phase((run) => {
      const last = run.messages.at(-1);
      const isCut = context.interruption.current !== undefined;
      if (last?.role !== 'tool' || last.id === latest.of(run) || isCut || !isDue(run))
        return of(run);
      return askBeside$(context, latest.set(run, last.id), aside);
    });
  return reflecting;
};

const dueWhen = (when: ReflectWhen): ((run: OpenRun) => boolean) => {
  if (typeof when === 'function') return when;
  if (typeof when === 'number') return ({ iteration }) => iteration % when === 0;
  return when === 'always' ? () => true : hasFailed;
};

const hasFailed = ({ messages }: OpenRun): boolean => {
  const last = messages.at(-1);
  return last?.role === 'tool' && last.content.some(({ isError }) => isError);
};

export const isWhen: Rule = [
  (value) =>
    value === 'always' ||
    value === 'onError' ||
    typeof value === 'function' ||
    (Number.isInteger(value) && Number(value) >= 1),
  "'always', 'onError', a whole number of at least 1 or a function",
];
