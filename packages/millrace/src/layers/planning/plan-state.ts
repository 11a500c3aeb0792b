import { enablePatches, produceWithPatches } from 'immer';
import type { StatePatch } from '../../events.js';
import { characterStart } from '../../values/surrogates.js';
import { isRecord } from '../../values/json.js';
import type { ToolCallBlock } from '../../values/message.js';
import { runKey } from '../../run.js';

export const planStatuses = ['todo', 'in progress', 'done', 'abandoned'] as const;

export type PlanStatus = (typeof planStatuses)[number];

export interface PlanStep {
  readonly title: string;
  readonly status: PlanStatus;
  readonly outcome?: string;
}

export interface Plan {
  readonly goal: string;
  readonly steps: readonly PlanStep[];
}

export const planKey = runKey<Plan | undefined>('plan', undefined);

/** Checks a value from outside, such as the state of a `stateChanged` event. */
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

/** The changed plan with its patches, or an error message for the model. */
export type PlanChange =
  { readonly plan: Plan; readonly patches: readonly StatePatch[] } | { readonly problem: string };

type PlanToolCall = Pick<ToolCallBlock, 'name' | 'input'>;

const maxSteps = 50;

export const changePlan = (plan: Plan | undefined, { name, input }: PlanToolCall): PlanChange => {
  if (name === 'create_plan') {
    const steps = titlesIn(input['steps']);
    if (steps.length === 0) return { problem: 'A plan needs at least one step.' };
    const created: Plan = { goal: lineOf(input['goal']), steps: steps.map(todo) };
    return limited({ plan: created, patches: [{ op: 'replace', path: [], value: created }] });
  }
  if (plan === undefined) return { problem: 'There is no plan yet: use create_plan first.' };
  return name === 'update_step' ? updateStep(plan, input) : reviseSteps(plan, input);
};

const updateStep = (plan: Plan, input: PlanToolCall['input']): PlanChange => {
  const { step, status, outcome } = input;
  const known = planStatuses.find((word) => word === status);
  if (typeof step !== 'number' || plan.steps[step - 1] === undefined) {
    const given = String(step);
    return { problem: `There is no step ${given}: the plan has steps 1 to ${plan.steps.length}.` };
  }
  if (known === undefined)
    return { problem: `The status of a step is one of: ${planStatuses.join(', ')}.` };
  return produce(plan, (draft) => {
    const before = draft.steps[step - 1];
    if (before === undefined) return;
    before.status = known;
    if (typeof outcome === 'string' && outcome.trim() !== '') before.outcome = lineOf(outcome);
  });
};

const reviseSteps = (plan: Plan, input: PlanToolCall['input']): PlanChange => {
  const titles = titlesIn(input['steps']);
  const settled = plan.steps.filter(isSettled);
  const open = plan.steps.filter((step) => !isSettled(step));
  const next = titles.map((title) => open.find((step) => step.title === title) ?? todo(title));
  if (settled.length + next.length === 0) return { problem: 'A plan needs at least one step.' };
  return limited(
    produce(plan, (draft) => {
      draft.steps = [...settled, ...next];
    }),
  );
};

const limited = (change: PlanChange): PlanChange =>
  'plan' in change && change.plan.steps.length > maxSteps
    ? { problem: `A plan can have up to ${maxSteps} steps: merge some of them.` }
    : change;

type Mutable<T> = {
  -readonly [Key in keyof T]: T[Key] extends readonly (infer Item)[] ? Mutable<Item>[] : T[Key];
};

const produce = (plan: Plan, recipe: (draft: Mutable<Plan>) => void): PlanChange => {
  enablePatches();
  const [next, patches] = produceWithPatches(plan, recipe);
  return { plan: next, patches };
};

export const isSettled = ({ status }: PlanStep): boolean =>
  status === 'done' || status === 'abandoned';

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

/** On one line, so no step can pass for another one. */
const lineOf = (text: unknown): string =>
  typeof text === 'string'
    ? cutLine(
        text
          .slice(0, 4 * maxLineLength)
          .replace(/[\s\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
          .trim(),
      )
    : '';

/** Maximum characters of a title or an outcome, which are part of every request. */
const maxLineLength = 500;

const cutLine = (line: string): string =>
  line.length <= maxLineLength ? line : `${line.slice(0, characterStart(line, maxLineLength))}…`;
