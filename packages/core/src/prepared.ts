import { defaultIfEmpty, defer, map, type Observable, of, takeUntil } from 'rxjs';
import type { CallInfo } from './call-info.js';
import { checkPrepared, type PreparedOptions, splitOptions } from './call-options.js';
import type { CallPlan } from './call-plan.js';
import type { CallScope } from './call-scope.js';
import type { Hooks } from './hooks.js';
import { readInput } from './input.js';
import { ordered } from './interceptor.js';
import { isRecord } from './json.js';
import type { Preparation } from './preparation.js';
import type { Message } from './message.js';
import { createStage, through$ } from './stage.js';
import { createToolkit } from './toolkit.js';

/** A call as it has been prepared. */
export interface Prepared {
  readonly plan: CallPlan;
  readonly input: readonly Message[];
  /** An interceptor would not have the call. */
  readonly isVetoed: boolean;
}

/** Leads what a call begins with through the interceptors of `prepare`, as far as no interrupt cuts them short. */
export const prepared$ = (
  plan: CallPlan,
  { call, interruption }: Pick<CallScope, 'call' | 'interruption'>,
  hooks: Pick<Hooks, 'report'>,
  input: readonly Message[],
): Observable<Prepared> => {
  const asked = { plan, input, isVetoed: false };
  const interceptors = ordered(plan.interceptors, 'prepare');
  if (interceptors.length === 0) return of(asked);
  const stages = interceptors.map(({ name, operator, failOpen }) =>
    createStage<Preparation>({
      name,
      what: 'preparation',
      failOpen,
      operate$: (preparation) => of(preparation).pipe(operator),
      isUsable: (value) => isPreparation(value, call),
      onVeto: () => hooks.report(0, { type: 'vetoed', of: 'prepare', name }),
      onPassedOver: (_, error) =>
        hooks.report(0, { type: 'handlerError', of: 'prepare', name, error }),
    }),
  );
  const { prepared, fixed } = splitOptions(plan.options);
  const options = { ...prepared, model: plan.model, tools: plan.toolkit.tools };
  return defer(() => through$<Preparation>({ call, input, options }, stages)).pipe(
    map((done) => ({
      plan: planWith({ ...plan, options: fixed }, done.options),
      input: readInput(done.input, call),
      isVetoed: false,
    })),
    takeUntil(interruption.cut$),
    defaultIfEmpty(undefined),
    map((done) => done ?? { ...asked, isVetoed: interruption.current === undefined }),
  );
};

const isPreparation = (value: unknown, call: CallInfo): value is Preparation => {
  if (!isRecord(value)) return false;
  checkPrepared('A prepared call', value['options']);
  readInput(value['input'], call);
  return true;
};

const planWith = (plan: CallPlan, { model, tools, ...options }: PreparedOptions): CallPlan => ({
  ...plan,
  model: model ?? plan.model,
  toolkit:
    tools === undefined || tools === plan.toolkit.tools ? plan.toolkit : createToolkit(tools),
  options: { ...plan.options, ...options },
});
