import { map } from 'rxjs';
import type { Context } from '../context.js';
import type { StatePatch } from '../events.js';
import { type Message, toolUsesOf, type ToolUseBlock } from '../message.js';
import { checkOptions, isText } from '../options.js';
import { alsoEnded, type PhaseFactory } from '../phase.js';
import { hasEnded, note, type Run, runKey } from '../run.js';
import { type Plan, planKey } from './plan-key.js';
import { changedPlan, planText } from './plan-state.js';
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
      const { messages } = run;
      const uses = usesSince(messages, seenKey.of(run));
      const { now, patches } = after(planKey.of(run), uses);
      if (now !== undefined && patches.length > 0) {
        hooks.report(run.iteration, { type: 'stateChanged', name: 'plan', state: now, patches });
      }
      if (hasEnded(run)) return run;
      const seen = seenKey.set(run, messages.at(-1)?.id);
      if (now === undefined || patches.length === 0) return seen;
      return note(planKey.set(seen, now), 'Plan', `${prompt}\n${planText(now)}`);
    });
  return alsoEnded(planning);
};

/** The last message that the plan is up to date with. */
const seenKey = runKey<string | undefined>('plan/seen', undefined);

/** The uses of plan tools in messages behind this one that came to something, in order. */
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
