import { defer, finalize, type MonoTypeOperatorFunction, Observable, tap } from 'rxjs';
import { restoreAsyncContext } from '../flow/async-context.js';
import type { Model } from '../models/model.js';
import type { Call } from '../seams/call.js';
import { isCall, isReply } from '../seams/checked-answer.js';
import type { Answer, Context, Layer } from '../seams/layer.js';
import type { Perform, Step } from '../step.js';
import { isRecord } from '../values/json.js';
import { textOf } from '../values/message.js';

/** The rules of the contract of layers, each the name of a check. */
export const layerRules = [
  'passes a call on, and no more than once',
  'answers a call with one reply',
  'answers a call with a reply and nothing else',
  'emits one value for each step',
  'does not repeat a step whose tool has returned',
  'gives back the async context after a wait',
  'keeps no subscription of next',
  'does not swallow an interrupt outside of a step',
  'edits calls and steps as copies',
  'keeps no state between calls',
] as const;

export type LayerRule = (typeof layerRules)[number];

/** The actions of a layer on one call. */
export interface CallEdges {
  passes: number;
  replies: number;
  /** Subscriptions of `next` that have not ended. */
  open: number;
  /** Steps of the layer that have not ended. */
  steps: number;
  status: 'idle' | 'running' | 'over';
  /** The reason of the reply that the layer got. */
  reason?: string;
  /** Descriptions of them, in order. */
  readonly notes: string[];
}

/** The actions of layers, seen from outside. */
export interface Edges {
  /** By the id of the call, for each layer. */
  readonly calls: ReadonlyMap<string, readonly CallEdges[]>;
  readonly faults: ReadonlyMap<LayerRule, readonly string[]>;
  readonly fault: (rule: LayerRule, detail: string) => void;
  readonly begin: (context: Context) => CallEdges;
}

export const createEdges = (): Edges => {
  const calls = new Map<string, CallEdges[]>();
  const faults = new Map<LayerRule, string[]>();
  return {
    calls,
    faults,
    fault: (rule, detail) => void faults.set(rule, [...(faults.get(rule) ?? []), detail]),
    begin: ({ info: { callId } }) => {
      const begun: CallEdges = {
        passes: 0,
        replies: 0,
        open: 0,
        steps: 0,
        status: 'idle',
        notes: [],
      };
      calls.set(callId, [...(calls.get(callId) ?? []), begun]);
      return begun;
    },
  };
};

/** Whether the layer has the call, and neither passed it on nor waits in a step. */
export const isHeld = ({ status, open, steps }: CallEdges): boolean =>
  status === 'running' && open === 0 && steps === 0;

interface Storage {
  run<T>(store: string, work: () => T): T;
  getStore(): string | undefined;
}

const hooks =
  typeof process === 'undefined' || !('getBuiltinModule' in process)
    ? undefined
    : process.getBuiltinModule('node:async_hooks');
const storage: Storage | undefined = hooks && new hooks.AsyncLocalStorage<string>();

/** Runs work in the async context of a call, if the platform has one. */
export const inContextOf = <T>(callId: string, work: () => T): T =>
  storage === undefined ? work() : storage.run(callId, work);

type Parts = Required<Layer>;

/** The layer, which notes in `edges` what it does. */
export const watched = (layer: Layer, edges: Edges): Layer => ({
  ...layer,
  ...(layer.record && { record: watchedRecord(layer, edges) }),
  ...(layer.call && { call: watchedCall(layer, edges) }),
  ...(layer.step && { step: watchedStep(layer, edges) }),
  ...(layer.model && { model: watchedModel(layer, edges) }),
});

/** Counts the subscriptions of a source that have not ended. */
const counting = <T>(seen: CallEdges, what: 'open' | 'steps'): MonoTypeOperatorFunction<T> =>
  tap({ subscribe: () => void (seen[what] += 1), finalize: () => void (seen[what] -= 1) });

/** Runs work at the end of a subscription, before its source is torn down. */
const beforeTearDown =
  <T>(work: () => void): MonoTypeOperatorFunction<T> =>
  (source) =>
    new Observable((subscriber) => {
      subscriber.add(work);
      source.subscribe(subscriber);
    });

/** Notes a value that crosses an edge of the layer in the async context of another call. */
const crossing =
  ({ info: { callId } }: Context, { fault }: Edges) =>
  (what: string): void => {
    const current = storage?.getStore();
    if (storage === undefined || current === callId) return;
    fault(
      'gives back the async context after a wait',
      `${what} in the async context of ${current ?? 'no call'}: put restoreAsyncContext() after what it waits for`,
    );
  };

const watchedRecord =
  (layer: Layer, { begin, fault }: Edges): Parts['record'] =>
  (context) => {
    const seen = begin(context);
    const wrap = layer.record?.(context);
    return <T>(call$: Observable<T>): Observable<T> => {
      const passed$ = defer(() => {
        seen.passes += 1;
        if (seen.passes > 1) fault(layerRules[0], "subscribes twice to the call in 'record'");
        return call$.pipe(counting(seen, 'open'));
      });
      return wrap?.(passed$) ?? passed$;
    };
  };

const watchedCall =
  (layer: Layer, edges: Edges): Parts['call'] =>
  (context) => {
    const { fault } = edges;
    const seen = edges.begin(context);
    const crosses = crossing(context, edges);
    const perform: Perform = (step) => context.perform(step).pipe(counting(seen, 'steps'));
    const wrap = layer.call?.({ ...context, perform });
    return (next) => {
      const passing: Answer = (call) =>
        defer(() => {
          seen.passes += 1;
          if (seen.passes > 1) fault(layerRules[0], 'passes a call on twice');
          if (!isCall(call)) fault(layerRules[0], 'passes on something that is not a call');
          else seen.notes.push(`passes on ${shownCall(call, context)}`);
          crosses('passes the call on');
          return next(call).pipe(
            restoreAsyncContext(),
            counting(seen, 'open'),
            tap(({ reason }) => (seen.reason = reason)),
          );
        });
      const answer = wrap?.(passing) ?? passing;
      return (call) =>
        defer(() => {
          seen.status = 'running';
          const isUnchanged = unchanged(call);
          return answer(call).pipe(
            tap({
              next: (reply) => {
                replied(reply, seen, edges);
                crosses('replies');
              },
              complete: () => {
                if (seen.replies === 0)
                  fault('answers a call with one reply', 'completes without a reply');
                seen.status = 'over';
              },
              error: () => (seen.status = 'over'),
            }),
            beforeTearDown(() => {
              const isSkipped = context.interruption.current !== undefined && seen.replies === 0;
              if (isSkipped && isHeld(seen)) fault(interrupts, waitsOutside);
              seen.status = 'over';
              if (!isUnchanged())
                fault(
                  copies,
                  'edits the call in place: pass a copy on, as in next({ ...call, … })',
                );
            }),
          );
        });
    };
  };

const interrupts = 'does not swallow an interrupt outside of a step';
const copies = 'edits calls and steps as copies';
export const waitsOutside =
  'waits outside of a step, so an interrupt cannot end its wait: use context.perform(step)';

const replied = (reply: unknown, seen: CallEdges, { fault }: Edges): void => {
  seen.replies += 1;
  if (seen.replies > 1) fault('answers a call with one reply', 'answers with two replies');
  if (!isReply(reply)) {
    fault(
      'answers a call with a reply and nothing else',
      `emits ${shownType(reply)}, which is not a reply`,
    );
    return;
  }
  seen.notes.push(`replies ${reply.reason} ${textOf(reply)}`);
  if (seen.reason === 'interrupted' && reply.reason !== 'interrupted') {
    fault(
      interrupts,
      `makes the reply of an interrupted call one with the reason '${reply.reason}'`,
    );
  }
};

const watchedStep =
  (layer: Layer, edges: Edges): Parts['step'] =>
  (context) => {
    const { fault } = edges;
    const seen = edges.begin(context);
    const crosses = crossing(context, edges);
    const returned = new Set<string>();
    const wrap = layer.step?.(context);
    return (next) => {
      const passing: Perform = <T>(step: Step<T>) =>
        defer(() => {
          const { kind, id } = step;
          if (returned.has(id))
            fault(
              'does not repeat a step whose tool has returned',
              `passes the step '${id}' on again, after its tool returned`,
            );
          seen.notes.push(`passes on the step ${kind} ${id}`);
          crosses(`passes the step '${id}' on`);
          return next(step).pipe(
            restoreAsyncContext(),
            counting(seen, 'open'),
            tap(() => kind === 'tool' && returned.add(id)),
          );
        });
      const through = wrap?.(passing) ?? passing;
      return <T>(step: Step<T>) =>
        defer(() => {
          let values = 0;
          const isUnchanged = unchanged(step);
          const { id, optional, cut } = step;
          return through(step).pipe(
            tap({
              next: () => {
                values += 1;
                if (values > 1)
                  fault('emits one value for each step', `emits two values for the step '${id}'`);
                crosses(`emits the value of the step '${id}'`);
              },
              complete: () => {
                // Without a value, a step is cut, if it can be.
                if (values > 0 || optional === true || cut !== undefined) return;
                fault(
                  'emits one value for each step',
                  `emits nothing for the step '${id}', which cannot be cut`,
                );
              },
            }),
            finalize(() => {
              if (!isUnchanged()) fault(copies, `edits the step '${id}' in place: pass a copy on`);
            }),
          );
        });
    };
  };

const watchedModel =
  (layer: Layer, { begin }: Edges): Parts['model'] =>
  (context) => {
    const seen = begin(context);
    return (next) => {
      const passing: Model = {
        ...next,
        stream$: (request, lent) => next.stream$(request, lent).pipe(counting(seen, 'open')),
      };
      return layer.model?.(context)(passing) ?? passing;
    };
  };

/** Returns whether a value, with what is in its lists and plain objects, is as it was. */
const unchanged = (value: object): (() => boolean) => {
  const fields = Object.entries(value);
  const before = written(value);
  return () =>
    fields.length === Object.keys(value).length &&
    fields.every(([name, field]) => Object.is(Reflect.get(value, name), field)) &&
    written(value) === before;
};

/** The data in a call or a step as JSON. */
const written = (value: object): string =>
  JSON.stringify(value, (name, field: unknown) => {
    if (['model', 'toolkit', 'memory', 'values', 'form'].includes(name)) return undefined;
    return typeof field === 'bigint' ? String(field) : field;
  });

/** The parts of a call that a layer can edit, except those that differ between equal calls. */
const shownCall = (call: Call, { info: { callId } }: Context): string => {
  const { input, history, instructions, status, options, notes, recalled, toolkit } = call;
  const texts = [input, history, recalled].map((messages) => messages.map(textOf));
  const data = [...texts, instructions, status, options, notes, toolkit.current.names];
  return JSON.stringify(data).replaceAll(callId, 'call');
};

const shownType = (value: unknown): string => (isRecord(value) ? 'an object' : typeof value);
