import { concat, concatMap, finalize, NEVER, of, tap, throwError } from 'rxjs';
import type { AgentOptions } from '../agent-options.js';
import type { CallInfo } from '../call-info.js';
import { MillraceError } from '../errors.js';
import type { Model } from '../model.js';
import { phase, type PhaseFactory } from '../phase.js';
import { nativePhases } from '../phase-list.js';
import { close$ } from '../phases/closing.js';
import type { CallStage } from '../pipeline/call-stage.js';
import { meterRequests } from '../pipeline/call-state.js';
import { insertStageAfter, nativePipeline } from '../pipeline/native-pipeline.js';
import { runLoop } from '../pipeline/run-loop.js';
import type { Run } from '../run.js';
import type { InputSchema } from '../schema.js';
import { tokensIn, type Usage } from '../usage.js';
import { type Account, accountOf, type Budget, type BudgetOptions, type Spent } from './budget.js';
import { type Meter, metered } from './metered.js';
import { costOf, priceIn, priceOf } from './prices.js';

/**
 * Holds an agent to budgets: they are looked at before each turn, and every request counts, whatever model is asked, also one that fails or is
 * left, and those beside the loop. A call for which one is used up ends with reason `budget` and a closing answer, or with a `budget`
 * error, and a `warning` says which. A call that is resumed goes on with what it had spent, but for what sub-agents had whose tool is not run again; a shared budget counts nothing twice. Sub-agents count where they are held to the same budget; what `summarisingMemory` asks is of no call.
 */
export const withBudget = <Output extends InputSchema | undefined>(
  options: AgentOptions<Output>,
  budgets: Budget | readonly Budget[],
): AgentOptions<Output> => {
  const all = [...new Set([budgets].flat())].map(accountOf);
  const executed = new WeakMap<CallInfo, number>();
  const countTools = (call: CallInfo, run: Run): void => {
    const toolCalls = run.executed - (executed.get(call) ?? 0);
    executed.set(call, run.executed);
    if (toolCalls > 0) all.forEach(({ spend }) => spend(call, { toolCalls }));
  };
  const watched: PhaseFactory = (context) =>
    phase((run) => {
      countTools(context.call, run);
      const first = all.find(({ excess }) => excess(context.call) !== undefined);
      const what = first?.excess(context.call);
      if (first === undefined || what === undefined) return of(run);
      const mute = (partial?: string): MillraceError => usedUp(what, partial);
      if (first.options.onExceed === 'error' || run.iteration === 0) {
        return throwError(() => mute());
      }
      context.hooks.report(run.iteration, { type: 'warning', message: what });
      return close$(run, context, { reason: 'budget', what, mute });
    });
  const recallTool = (call: CallInfo): void => {
    executed.set(call, (executed.get(call) ?? 0) + 1);
    all.forEach(({ recall }) => recall(call, { toolCalls: 1 }));
  };
  const opened: CallStage = ({ call }) =>
    concatMap((state) => {
      const closes = all.map(({ open }) => open(call));
      const counted = meterRequests(state, {
        meter: metering(call, all),
        countReplayed: (spent) => {
          if ('toolCalls' in spent) recallTool(call);
          else all.forEach(({ options, recall }) => recall(call, costIn(options, spent)));
        },
      });
      return concat(of(counted), NEVER).pipe(finalize(() => closes.forEach((close) => close())));
    });
  const settled: CallStage = ({ call }) =>
    tap(({ run }) => {
      if (run !== undefined) countTools(call, run);
    });
  return {
    ...options,
    phases: [watched, ...(options.phases ?? nativePhases)],
    pipeline: [opened, ...insertStageAfter(runLoop, settled, options.pipeline ?? nativePipeline)],
  };
};

/** Tells budgets what each request of a call costs, whatever model is asked. */
const metering =
  (call: CallInfo, all: readonly Account[]) =>
  (model: Model): Model => {
    const meter: Meter = (usage, name) => {
      all.forEach(({ options, spend }) =>
        spend(call, costIn(options, { usage, model: name }, model.name)),
      );
    };
    const begin = (name: string): void => {
      all.forEach(({ options: { prices } }) => prices && priceOf(name, prices));
    };
    return metered(model, meter, begin);
  };

const costIn = (
  { prices }: BudgetOptions,
  { usage, model }: { readonly usage: Usage; readonly model: string },
  asked = model,
): Partial<Spent> => {
  const price = prices && (priceIn(model, prices) ?? priceIn(asked, prices));
  const money = price === undefined ? 0 : costOf(usage, price);
  return { usage, tokens: tokensIn(usage), money };
};

const usedUp = (what: string, partial: string | undefined): MillraceError =>
  new MillraceError('budget', `${what} Raise it, or wait for another one.`, {
    ...(partial === undefined ? {} : { partial }),
  });
