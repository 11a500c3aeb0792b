import type { CallOptions, EventOf, Layer } from 'millrace';
import { isRecord } from 'millrace/values';
import type { ComponentStatus, FlowChange, Variables } from './scope.js';

/** The state of a flow, in `stateChanged` events named `flow`. */
export interface FlowState {
  /** The status of each component by ID; of one inside an iteration or a loop, that of its latest run. */
  readonly components: Readonly<Record<string, ComponentStatus>>;
  readonly variables: Readonly<Record<string, unknown>>;
}

/** The name of the state in events. */
export const flowStateName = 'flow';

type StatePatch = EventOf<'stateChanged'>['patches'][number];

type Report = (state: FlowState, patches: readonly StatePatch[]) => void;

/** A layer that lends the events of a call to the step of a flow, which otherwise only sees the options of its calls. */
export const createReporters = (): {
  readonly layer: Layer;
  readonly of: (options: CallOptions) => Report;
} => {
  const reporters = new Map<string, Report>();
  return {
    layer: {
      name: 'flowState',
      call:
        ({ info: call, hooks, whenOver }) =>
        (next) =>
        (asked) => {
          reporters.set(call.callId, (state, patches) => {
            hooks.report(0, { type: 'stateChanged', name: flowStateName, state, patches });
          });
          whenOver(() => reporters.delete(call.callId));
          return next(asked);
        },
    },
    of: ({ parent }) => reporters.get(parent?.callId ?? '') ?? (() => undefined),
  };
};

const nothing: ReadonlyMap<string, unknown> = new Map();

/** Collects the changes of one call, and reports each as a new state. */
export const createState = (
  ids: readonly string[],
  initial: Variables,
  report: Report,
): ((change: FlowChange) => void) => {
  let state: FlowState = {
    components: Object.fromEntries(ids.map((id) => [id, 'pending'])),
    variables: Object.fromEntries([...initial].map(([name, { value }]) => [name, value])),
  };
  return ({ id, status, variables = nothing }) => {
    const patches: readonly StatePatch[] = [
      ...(state.components[id] === status
        ? []
        : [{ op: 'replace', path: ['components', id], value: status } as const]),
      ...[...variables].map(
        ([name, value]) => ({ op: 'replace', path: ['variables', name], value }) as const,
      ),
    ];
    if (patches.length === 0) return;
    state = {
      components:
        state.components[id] === status ? state.components : { ...state.components, [id]: status },
      variables: { ...state.variables, ...Object.fromEntries(variables) },
    };
    report(state, patches);
  };
};

/** Whether the state of an event is that of a flow: stored events may be damaged. */
export const isFlowState = (value: unknown): value is FlowState =>
  isRecord(value) && isRecord(value['components']) && isRecord(value['variables']);
