import type { Observable } from 'rxjs';
import { limitsOf } from '../call-options.js';
import { type Consultation, consult$, type Consulted } from '../consult.js';
import { ready } from '../models/ready.js';
import type { CallContext } from './call-stage.js';
import type { CallState } from './call-state.js';

/** Asks the model of a call from a stage, before its loop or behind it, as `consult$` does. Before it, `charge` adds what that cost. */
export const consultInCall$ = (
  { call, hooks, interruption, scope, step$ }: CallContext,
  { plan }: CallState,
  consultation: Consultation,
): Observable<Consulted> => {
  const { demand, scheduler, retryBudget } = scope;
  const context = {
    call,
    model: ready(plan.model),
    hooks,
    interruption,
    demand,
    scheduler,
    limits: limitsOf(plan.options),
    retryBudget,
    toolUseIds: new Set<string>(),
    step$,
  };
  return consult$(context, { iteration: hooks.iteration() }, consultation);
};
