import { type Observable, tap } from 'rxjs';
import { isMillraceError, type MillraceError } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { cell, type Locals, type Perform, type Step } from '../step.js';
import { isUsage } from '../values/shape.js';
import type { ToolOutput } from '../values/tool-output.js';
import { addUsage, noUsage, type Usage } from '../values/usage.js';

export interface Spending {
  readonly usage: Usage;
  /** Usage by the name of the model that answered. */
  readonly models: Readonly<Record<string, Usage>>;
  readonly toolCalls: number;
}

/** Reported by the calls of a tool call. */
export interface Below {
  spent: Spending;
  /** The fatal error of one, which overrides the tool's result. */
  halt?: MillraceError;
  /** Overrides it, too. */
  output?: () => ToolOutput;
  /** The beginning of the ids of the calls. */
  readonly base: string;
  /** The name of the tool, if it cannot run again to continue its calls. */
  readonly unmarked: string | undefined;
  /** The same of the tool call that has made the call of this one. */
  readonly above: Below | undefined;
}

export const noSpending: Spending = { usage: noUsage, models: {}, toolCalls: 0 };

export const requestSpending = (model: string, usage: Usage): Spending => ({
  usage,
  models: { [model]: usage },
  toolCalls: 0,
});

export const addSpending = (a: Spending, b: Spending): Spending => ({
  usage: addUsage(a.usage, b.usage),
  models: Object.entries(b.models).reduce(
    (all, [model, usage]) => ({
      ...all,
      [model]: addUsage(Object.hasOwn(all, model) ? (all[model] ?? noUsage) : noUsage, usage),
    }),
    a.models,
  ),
  toolCalls: a.toolCalls + b.toolCalls,
});

/** The cost of the sub-agents of a tool call, stored in its step: a replayed step does not make its calls again. */
export interface CostBelow {
  readonly usage: Usage;
  readonly below?: Pick<Spending, 'models' | 'toolCalls'>;
}

export const costOf = ({ usage, below }: CostBelow): CostBelow =>
  below === undefined ? { usage } : { usage, below };

export const addCost = (a: CostBelow, b: CostBelow): CostBelow => {
  if (b.usage === noUsage) return costOf(a);
  const whole = ({ usage, below: { models, toolCalls } = noSpending }: CostBelow): Spending => ({
    usage,
    models,
    toolCalls,
  });
  return costBelow(addSpending(whole(a), whole(b)));
};

export const costBelow = ({ usage, models, toolCalls }: Spending): CostBelow =>
  toolCalls === 0 && Object.keys(models).length === 0
    ? { usage }
    : { usage, below: { models, toolCalls } };

export interface SpendingListener {
  /** A request, failed ones included, or a tool has run. Sub-agents report their own costs. */
  readonly live: (spending: Spending) => void;
  /** A step was replayed, or cut before it started: its cost, including sub-agents. */
  readonly replayed: (spending: Spending) => void;
}

/** The steps whose values an earlier process made, and paid for. */
export const replayedSteps = cell('call', () => new Set<string>());

/** Performs steps and reports their costs. `model` is the name for values that do not name their model. */
export const watchingSpending = (
  next: Perform,
  { local }: { readonly local: Locals },
  { live, replayed }: SpendingListener,
  model = '',
): Perform => {
  const replayedIds = local(replayedSteps);
  const decided = new Map<string, Spending>();
  return <T>(step: Step<T>) => {
    const { kind, id } = step;
    if (kind !== 'model' && kind !== 'intent' && kind !== 'tool') return next(step);
    let hasRun = false;
    let isCut = false;
    const { cut: early$ } = step;
    const cut$: Step<T>['cut'] =
      early$ &&
      ((why) => {
        isCut = true;
        return early$(why);
      });
    const run = (attempt: number): Observable<T> => {
      // The cost of a tool call includes that of deciding on it.
      const before = hasRun || kind !== 'tool' ? undefined : decided.get(`${id}/intent`);
      hasRun = true;
      if (before !== undefined) replayed(before);
      return step.run(attempt);
    };
    return next({ ...step, run, ...(cut$ && { cut: cut$ }) }).pipe(
      tap({
        next: (value) => {
          const spending = spendingIn(value, kind, model);
          if (kind === 'intent') {
            if (!hasRun && replayedIds.has(id)) decided.set(id, spending);
          } else if (!hasRun) {
            // An answer of a layer, such as a cache, costs nothing.
            if (isCut || replayedIds.has(id)) replayed(spending);
          } else if (kind === 'model') live(spending);
          else if (isExecuted(value)) live({ ...noSpending, toolCalls: 1 });
        },
        error: (error: unknown) => {
          if (kind === 'model' && isMillraceError(error) && error.usage !== undefined) {
            live(requestSpending(model, error.usage));
          }
        },
      }),
    );
  };
};

const spendingIn = (value: unknown, kind: string, model: string): Spending => {
  if (!isRecord(value) || !isUsage(value['usage'])) return noSpending;
  const { usage, below } = value;
  const own = kind === 'tool' && isExecuted(value) ? 1 : 0;
  if (kind === 'model') {
    const name = typeof value['model'] === 'string' ? value['model'] : model;
    return requestSpending(name, usage);
  }
  return isBelow(below)
    ? { usage, models: below.models, toolCalls: below.toolCalls + own }
    : { usage, models: { [model]: usage }, toolCalls: own };
};

const isExecuted = (value: unknown): boolean => isRecord(value) && value['executed'] === true;

const isBelow = (value: unknown): value is Pick<Spending, 'models' | 'toolCalls'> =>
  isRecord(value) &&
  typeof value['toolCalls'] === 'number' &&
  isRecord(value['models']) &&
  Object.values(value['models']).every(isUsage);
