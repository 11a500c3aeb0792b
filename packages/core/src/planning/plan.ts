import { map } from 'rxjs';
import type { Context } from '../context.js';
import type { StatePatch } from '../events.js';
import { type Message, toolUsesOf, type ToolUseBlock } from '../message.js';
import { checkOptions, isText } from '../options.js';
import { alsoEnded, type PhaseFactory } from '../phase.js';
import { hasEnded, note, type Run, runKey } from '../run.js';
import { type Plan, planKey } from './plan-key.js';
import { changedPlan, isSettled, planText } from './plan-state.js';
import { isPlanUse } from './plan-tools.js';
import { planPrompt } from './planning-prompt.js';

/** How a plan is shown. */
export interface PlanOptions {
  /** What stands above it in each request, instead of what does by default. */
  readonly prompt?: string;
}

/**
 * Makes a phase that keeps the plan of a call: it does what the model has said with the tools of `createPlanTools`, tells each change by a `stateChanged` event
 * with the name `plan`, and shows the plan as it stands in every request as `[Plan]`. It asks no model. A plan of an earlier call goes on where the
 * conversation still holds the uses that made it. Put it before `reasoning` and behind `acting`; `withPlan` does so.
 */
export const plan = (options: PlanOptions = {}): PhaseFactory => {
  checkOptions('plan()', options, { prompt: isText });
  const { prompt = planPrompt } = options;
  const planning = ({ hooks }: Pick<Context, 'hooks'>) =>
    map((run: Run) => {
      const seen = seenKey.of(run);
      const uses = usesSince(run.messages, seen);
      const { now, patches } = seen === undefined ? restored(uses) : after(planKey.of(run), uses);
      const hasChanged = now !== undefined && patches.length > 0;
      if (hasChanged) {
        hooks.report(run.iteration, { type: 'stateChanged', name: 'plan', state: now, patches });
      }
      if (hasEnded(run)) return run;
      const upToDate = seenKey.set(run, run.messages.at(-1)?.id);
      if (!hasChanged) return upToDate;
      return note(planKey.set(upToDate, now), 'Plan', `${prompt}\n${planText(now)}`);
    });
  return alsoEnded(planning);
};

const seenKey = runKey<string | undefined>('plan/seen', undefined);

/** The plan with which earlier calls have left off; one that is settled is of the past. */
const restored = (uses: readonly ToolUseBlock[]): After => {
  const { now } = after(undefined, uses);
  return now === undefined || now.steps.every(isSettled)
    ? { now: undefined, patches: [] }
    : { now, patches: [{ op: 'replace', path: [], value: now }] };
};

const usesSince = (
  messages: readonly Message[],
  seen: string | undefined,
): readonly ToolUseBlock[] => {
  const from = messages.findLastIndex(({ id }) => id === seen) + 1;
  // The message that asks may be the one that was seen last.
  return messages.slice(from).flatMap((message, index) => {
    if (message.role !== 'tool') return [];
    const asked = messages[from + index - 1];
    if (asked?.role !== 'assistant') return [];
    const failed = message.content.filter(({ isError }) => isError).map((it) => it.toolUseId);
    return toolUsesOf(asked).filter((use) => isPlanUse(use) && !failed.includes(use.id));
  });
};

interface After {
  readonly now: Plan | undefined;
  readonly patches: readonly StatePatch[];
}

const after = (before: Plan | undefined, uses: readonly ToolUseBlock[]): After =>
  uses.reduce<After>(
    ({ now, patches }, use) => {
      const change = changedPlan(now, use);
      return 'plan' in change
        ? { now: change.plan, patches: [...patches, ...change.patches] }
        : { now, patches };
    },
    { now: before, patches: [] },
  );
