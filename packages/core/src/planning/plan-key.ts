import { isRecord } from '../json.js';
import { runKey } from '../run.js';

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
