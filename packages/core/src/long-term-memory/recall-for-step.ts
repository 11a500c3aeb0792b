import { map, of } from 'rxjs';
import { consult$, type ConsultNeeds } from '../consult.js';
import type { Context } from '../context.js';
import { taskOf } from '../fitting/task.js';
import { type Message, textOf } from '../message.js';
import { phase, type PhaseFactory } from '../phase.js';
import { type Plan, planKey } from '../planning/plan-key.js';
import { note, type OpenRun, runKey, spend } from '../run.js';
import { findMemories$ } from './find-memories.js';
import type { MemorySettings } from './memory-settings.js';
import { rankMemories } from './rank-memories.js';
import type { ScopeInCall } from './scope-in-call.js';
import type { ShownMemories } from './shown-memories.js';
import { recalledTitle, writtenMemories } from './written-memories.js';

type Needs = ConsultNeeds & Pick<Context, 'interruption' | 'values'>;

/**
 * Makes a phase, to be put before `reasoning`, that recalls anew when another step of the plan is in progress: what may help with it, and is not shown already, is shown until
 * the next one is, and never stored.
 */
export const recallForStep = (
  settings: MemorySettings,
  scopeIn: ScopeInCall,
  shown: ShownMemories,
  name: string,
): PhaseFactory => {
  const latest = runKey<string>(`${name}/step`, '');
  const title = name.includes('/') ? `${titleOfStep} ${name.split('/').at(-1) ?? ''}` : titleOfStep;
  const recalling = (context: Needs) =>
    phase((run) => {
      const step = stepInProgress(planKey.of(run));
      if (step === latest.of(run)) return of(run);
      const begun = latest.set(run, step);
      if (step === '') return of(note(begun, title, ''));
      if (context.interruption.current !== undefined) return of(run);
      const scope = scopeIn(context);
      if (scope === undefined) return of(begun);
      return findMemories$(settings, context, {
        scope,
        position: `${run.iteration}/${name}`,
        iteration: run.iteration,
        known: shown.of(context.call),
        text: () => step,
        aim: () => ({ goal: askedIn(run, context), subGoal: step }),
        consult$: (asked) => consult$(context, run, asked),
      }).pipe(
        map(({ memories, usage }) => {
          const told = note(begun, title, writtenMemories(memories));
          return usage === undefined ? told : spend(told, usage, rankMemories);
        }),
      );
    });
  return recalling;
};

const titleOfStep = `${recalledTitle} for the Step in Progress`;

/** The steps that are worked on. */
const stepInProgress = (plan: Plan | undefined): string =>
  (plan?.steps ?? [])
    .filter(({ status }) => status === 'in progress')
    .map(({ title }) => title)
    .join('\n');

const askedIn = ({ messages }: OpenRun, { call }: Needs): string => {
  const isTask = taskOf(messages, call.callId);
  return messages
    .filter((message: Message) => message.role === 'user' && isTask(message))
    .map(textOf)
    .join('\n');
};
