import type { CallPlan } from './call-plan.js';
import type { CallStage } from './pipeline/call-stage.js';

/** A call that can begin: its plan, and what happens in it, in order. */
export interface PlannedCall extends CallPlan {
  readonly pipeline: readonly CallStage[];
}
