import { enablePatches, produceWithPatches } from 'immer';
import type { StatePatch } from '../../events.js';
import { characterStart } from '../../values/surrogates.js';
import { isRecord } from '../../values/json.js';
import type { ToolUseBlock } from '../../values/message.js';
import { runKey } from '../../run.js';

export const planStatuses = ['todo', 'in progress', 'done', 'abandoned'] as const;

/** How far a step of a plan is. */
export type PlanStatus = (typeof planStatuses)[number];

/** A step of a plan. */
export interface PlanStep {
  readonly title: string;
  readonly status: PlanStatus;
  /** What came of it, or why it was given up. */
  readonly outcome?: string;
}

/** What the model means to do. Steps are numbered from 1, in order. */
export interface Plan {
  readonly goal: string;
  readonly steps: readonly PlanStep[];
}

export const planKey = runKey<Plan | undefined>('plan', undefined);

/** The plan that a value from outside is, such as the state of a `stateChanged` event. */
export const isPlan = (value: unknown): value is Plan =>
  isRecord(value) &&
  typeof value['goal'] === 'string' &&
  Array.isArray(value['steps']) &&
  value['steps'].every(
    (step) =>
      isRecord(step) &&
      typeof step['title'] === 'string' &&
      ['undefined', 'string'].includes(typeof step['outcome']) &&
      planStatuses.some((status) => status === step['status']),
  );

export const planTools = ['create_plan', 'update_step', 'revise_plan'] as const;

/** What a use of one of them makes of a plan: the new one with the way to it, or what is wrong, for the model. */
export type PlanChange =
  { readonly plan: Plan; readonly patches: readonly StatePatch[] } | { readonly problem: string };

type Use = Pick<ToolUseBlock, 'name' | 'input'>;

/** Steps that a plan may have: a list that never ends is no plan. */
const mostSteps = 50;

/** Changes a plan as one use of its tools says, or says why it cannot be. */
export const changedPlan = (plan: Plan | undefined, { name, input }: Use): PlanChange => {
  if (name === 'create_plan') {
    const steps = titlesIn(input['steps']);
    if (steps.length === 0) return { problem: 'A plan needs at least one step.' };
    const created: Plan = { goal: lineOf(input['goal']), steps: steps.map(todo) };
    return sized({ plan: created, patches: [{ op: 'replace', path: [], value: created }] });
  }
  if (plan === undefined) return { problem: 'There is no plan yet: use create_plan first.' };
  return name === 'update_step' ? updated(plan, input) : revised(plan, input);
};

const updated = (plan: Plan, input: Use['input']): PlanChange => {
  const { step, status, outcome } = input;
  const known = planStatuses.find((word) => word === status);
  if (typeof step !== 'number' || plan.steps[step - 1] === undefined) {
    const given = String(step);
    return {
      problem: `There is no step ${given}: the plan has the steps 1 to ${plan.steps.length}.`,
    };
  }
  if (known === undefined) return { problem: `A step is ${planStatuses.join(', ')}.` };
  return changed(plan, (draft) => {
    const before = draft.steps[step - 1];
    if (before === undefined) return;
    before.status = known;
    if (typeof outcome === 'string' && outcome.trim() !== '') before.outcome = lineOf(outcome);
  });
};

const revised = (plan: Plan, input: Use['input']): PlanChange => {
  const titles = titlesIn(input['steps']);
  const settled = plan.steps.filter(isSettled);
  const open = plan.steps.filter((step) => !isSettled(step));
  const next = titles.map((title) => open.find((step) => step.title === title) ?? todo(title));
  if (settled.length + next.length === 0) return { problem: 'A plan needs at least one step.' };
  return sized(
    changed(plan, (draft) => {
      draft.steps = [...settled, ...next];
    }),
  );
};

const sized = (change: PlanChange): PlanChange =>
  'plan' in change && change.plan.steps.length > mostSteps
    ? { problem: `A plan has at most ${mostSteps} steps: put some together.` }
    : change;

type Draft<T> = {
  -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Draft<Item>[] : T[Key];
};

const changed = (plan: Plan, recipe: (draft: Draft<Plan>) => void): PlanChange => {
  enablePatches();
  const [next, patches] = produceWithPatches(plan, recipe);
  return { plan: next, patches };
};

/** Tells whether nothing more is to be done for a step. */
export const isSettled = ({ status }: PlanStep): boolean =>
  status === 'done' || status === 'abandoned';

/** The plan as a text, a line a step. */
export const planText = ({ goal, steps }: Plan): string =>
  [
    ...(goal === '' ? [] : [`Goal: ${goal}`]),
    ...steps.map(
      ({ title, status, outcome }, index) =>
        `${index + 1}. [${status}] ${title}${outcome === undefined ? '' : ` (${outcome})`}`,
    ),
  ].join('\n');

const todo = (title: string): PlanStep => ({ title, status: 'todo' });

const titlesIn = (steps: unknown): readonly string[] =>
  Array.isArray(steps) ? steps.map(lineOf).filter((title) => title !== '') : [];

/** On one line, so that no text of a step can pass for another one. */
const lineOf = (text: unknown): string =>
  typeof text === 'string'
    ? cutLine(
        text
          .slice(0, 4 * longestLine)
          .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
          .trim(),
      )
    : '';

/** Characters of a title or an outcome: it stands in every request. */
const longestLine = 500;

const cutLine = (line: string): string =>
  line.length <= longestLine ? line : `${line.slice(0, characterStart(line, longestLine))}…`;
