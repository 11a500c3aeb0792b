import { identity, type SchedulerLike } from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { limitsOf } from '../call-options.js';
import { openDemand } from '../demand.js';
import { createHooks } from '../hooks.js';
import type { Model } from '../model.js';
import { createRetryBudget } from '../models/retry-budget.js';
import type { receive$ } from '../receive.js';
import { createTrampoline } from '../trampoline.js';

/** What a request needs that belongs to a session, and to no call: nobody hears of it, and nobody interrupts it. */
export const standAlone = (
  sessionId: string,
  model: Model,
  scheduler: SchedulerLike,
): Parameters<typeof receive$>[0] => {
  const call: CallInfo = {
    rootId: sessionId,
    callId: sessionId,
    sessionId,
    agent: [],
    metadata: {},
  };
  return {
    call,
    model,
    throughLayers: identity,
    scheduler,
    hooks: createHooks({
      call,
      scheduler,
      interceptors: [],
      listeners: [],
      deliver: createTrampoline(),
      nextSeq: () => 0,
    }),
    demand: openDemand,
    limits: limitsOf({}),
    retryBudget: createRetryBudget(10),
  };
};
