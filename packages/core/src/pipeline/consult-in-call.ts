import { type Observable, of } from 'rxjs';
import { limitsOf } from '../call-options.js';
import { type Consultation, consult$, type Consulted } from '../consult.js';
import type { Model } from '../model.js';
import { ready } from '../models/ready.js';
import type { CallContext } from './call-stage.js';
import type { CallState } from './call-state.js';
import { noUsage } from '../usage.js';

/**
 * Asks the model of a call, or another one, from a stage before its loop or behind it, as `consult$` does. Before it, `charge` adds what that cost. A call
 * of steps has no model of its own: without another it is a failure.
 */
export const consultInCall$ = (
  { call, hooks, scope, perform, throughLayers }: CallContext,
  { plan }: CallState,
  { model = plan.model, ...consultation }: Consultation & { readonly model?: Model | undefined },
): Observable<Consulted> => {
  if (model === undefined) {
    const why = 'An agent that is made of steps has no model to be asked: give one.';
    return of({ status: 'failed', why, usage: noUsage });
  }
  const { demand, scheduler, retryBudget } = scope;
  const context = {
    call,
    model: ready(model),
    throughLayers,
    hooks,
    holds: scope.holds,
    demand,
    scheduler,
    limits: limitsOf(plan.options),
    retryBudget,
    toolUseIds: new Set<string>(),
    perform,
  };
  return consult$(context, { iteration: hooks.iteration() }, consultation);
};
