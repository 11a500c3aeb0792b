import {
  aroundModel,
  cell,
  type Cell,
  type Layer,
  type Model,
  type Perform,
  type Step,
} from 'millrace';
import type { LoopCall } from 'millrace/call';
import { type Context, type OpenRun, phase, type PhaseFactory } from 'millrace/phases';
import { isRecord } from 'millrace/values';
import { defer, map, type Observable, of } from 'rxjs';

/** A choice as a journal records it: plain JSON. */
export interface Choice {
  /** Which model; absent for the agent's own. */
  readonly key?: string;
  readonly why: string;
}

/** Within every layer that wraps the model: a wrapper is not the agent's own model, and would not be replaced. */
export const innermostPlace = Number.MAX_SAFE_INTEGER;

/** How a layer chooses the model of an agent. */
export interface Chooser {
  readonly name: string;
  readonly priority: number;
  /** The position of the step that chooses. A choice of the same position is made once. */
  readonly position: (run: OpenRun) => string;
  /** Emits one choice and completes. */
  readonly choose$: (context: Context, call: LoopCall, run: OpenRun) => Observable<Choice>;
  /** The model of a choice in place of the agent's own; `undefined` keeps that. */
  readonly modelOf: (choice: Choice, own: Model) => Model | undefined;
}

/**
 * Creates a layer that replaces the agent's own model. The choice is a step, so a resumed call keeps it. The layer is
 * next to the model: budgets, caches and events see the chosen model under its own name.
 */
export const choosingLayer = (chooser: Chooser): Layer => {
  const chosen = cell('call', (): Chosen => ({}));
  return {
    name: chooser.name,
    priority: chooser.priority,
    turn: (phases) => [choosing(chooser, chosen), ...phases],
    model: ({ local }) => {
      const state = local(chosen);
      return (next) => {
        const { choice, own } = state;
        if (choice === undefined || !isOwn(next, own)) return next;
        const model = chooser.modelOf(choice, next);
        return model === undefined ? next : replacing(model, state);
      };
    },
    step: ({ local }) => namingSteps(local(chosen)),
  };
};

interface Chosen {
  position?: string;
  choice?: Choice;
  /** The agent's own model. Others, such as the one of a planner, are not replaced. */
  own?: Model;
  /** The model that answers the request under way. */
  answering?: string | undefined;
}

const choosing =
  ({ name, position, choose$, modelOf }: Chooser, chosen: Cell<Chosen>): PhaseFactory =>
  (context, call) => {
    const { model } = call;
    const { local, hooks, perform } = context;
    const state = local(chosen);
    state.own = model;
    return phase((run) => {
      const id = position(run);
      if (state.position === id) return run;
      return perform({
        kind: name,
        id,
        input: undefined,
        run: () => choose$(context, call, run),
        cut: ({ reason }) => of<Choice>({ why: reason }),
        form: { isWritten: isChoice },
      }).pipe(
        map((choice) => {
          Object.assign(state, { position: id, choice });
          const replacement = modelOf(choice, model);
          if (replacement !== undefined) {
            const event = { type: 'modelChosen', by: name, model: replacement.name } as const;
            hooks.report(run.iteration + 1, { ...event, why: choice.why });
          }
          return run;
        }),
      );
    });
  };

const isChoice = (written: unknown): boolean =>
  isRecord(written) &&
  typeof written['why'] === 'string' &&
  (written['key'] === undefined || typeof written['key'] === 'string');

/** Models in place of an agent's own, which another layer may replace in turn. */
const replacements = new WeakSet<Model>();

const isOwn = (model: Model, own: Model | undefined): boolean =>
  model === own || replacements.has(model);

const replacing = (model: Model, state: Chosen): Model => {
  const replacement = aroundModel(model, (request, context) =>
    defer(() => {
      state.answering = model.name;
      return model.stream$(request, {
        ...context,
        report: (event) => {
          if (event.type === 'modelFallback') state.answering = event.to;
          context.report(event);
        },
      });
    }),
  );
  replacements.add(replacement);
  return replacement;
};

/** Names the model that answered in the value of its step: a resumed call is charged by that name. */
const namingSteps =
  (state: Chosen) =>
  (next: Perform): Perform =>
  <T>(step: Step<T>) =>
    step.kind === 'model'
      ? defer(() => {
          state.answering = undefined;
          return next(step).pipe(map((value) => named(value, state.answering)));
        })
      : next(step);

const named = <T>(value: T, model: string | undefined): T =>
  model !== undefined && isRecord(value) && typeof value['model'] === 'string'
    ? { ...value, model }
    : value;
