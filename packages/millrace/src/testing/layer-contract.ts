import {
  catchError,
  concatMap,
  first,
  from,
  interval,
  lastValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  Subject,
  takeUntil,
  tap,
  timeout,
} from 'rxjs';
import { createAgent } from '../agent.js';
import type { CallOptions } from '../call/call-options.js';
import { restoreAsyncContext } from '../flow/async-context.js';
import { interruptOn } from '../layers/interrupt-on.js';
import type { Model } from '../models/model.js';
import type { Input } from '../seams/input.js';
import type { Layer, Use } from '../seams/layer.js';
import { interruptLayer } from '../seams/steps.js';
import { tool } from '../tools/tool.js';
import type { Tool } from '../tools/types.js';
import { messageOf } from '../values/errors.js';
import {
  createEdges,
  type Edges,
  inContextOf,
  isHeld,
  type LayerRule,
  layerRules,
  waitsOutside,
  watched,
} from './layer-edges.js';
import { scriptedModel, text, toolCall } from './scripted-model.js';
import type { Check } from './verify-events.js';

/** The parts of a call that a layer needs. */
export interface LayerSamples {
  /** The input of each call. Default: `What time is it?`. */
  readonly input?: Input | undefined;
  /** Options of each call, such as the `metadata` that the layer reads. Default: none. */
  readonly options?: Pick<CallOptions, 'context' | 'limits' | 'metadata' | 'request'> | undefined;
  /** The tools of the agent. Default: `clock`, without input. */
  readonly tools?: readonly Tool[] | undefined;
  /** The model, which is asked any number of times. Default: calls `clock` once, then answers `It is noon.` */
  readonly model?: Model | undefined;
}

/**
 * The contract of layers: one check for each fault that breaks the calls around a layer. `create` returns the layer as `use` takes it,
 * alone or in a list; each check plays calls of an agent with a new one. A layer that shares something between calls on purpose, such as
 * a cache, leaves out the check `keeps no state between calls`. Async contexts are checked on platforms with `AsyncLocalStorage`.
 *
 * @example
 * ```ts
 * for (const { name, run } of layerContract(() => quota(accounts))) it(name, run);
 * ```
 */
export const layerContract = (
  create: () => Use[number],
  samples: LayerSamples = {},
): readonly Check[] =>
  layerRules.map((rule) => ({
    name: rule,
    run: async () => {
      for (const scene of scenes[rule] ?? [answered]) {
        const edges = createEdges();
        const layers = [create()].flat().map((layer) =>
          // The kernel knows it by its identity.
          layer === interruptLayer ? layer : watched(layer, edges),
        );
        const failure = await scene({ edges, layers, samples });
        const [fault] = edges.faults.get(rule) ?? [];
        if (fault !== undefined) throw new Error(`The layer ${fault}.`);
        // A fault of another check may be why.
        if (failure !== undefined && edges.faults.size === 0) throw new Error(failure);
      }
    },
  }));

interface Stage {
  readonly edges: Edges;
  readonly layers: readonly Layer[];
  readonly samples: LayerSamples;
}

/** Plays calls. Resolves to why one has failed, if that is not expected. */
type Scene = (stage: Stage) => Promise<string | undefined>;

/** The world around the calls of a scene. */
interface World {
  /** The kind of step that never ends. Default: none. */
  readonly waits?: 'model' | 'tool';
  /** Ends the wait of each model request and tool call. Default: they do not wait. */
  readonly gate$?: Observable<void>;
}

const clock = tool({ name: 'clock', description: 'Returns the time.', run: () => '12:00' });

const noon: Model = {
  name: 'noon',
  stream$: (request, context) => {
    const hasTime = request.messages.at(-1)?.role === 'tool' || request.tools === undefined;
    return scriptedModel(hasTime ? [text('It is noon.')] : [toolCall('clock')]).stream$(
      request,
      context,
    );
  },
};

/** The innermost layer, which makes requests and tool calls wait. */
const worldLayer = ({ waits, gate$ = of(undefined) }: World): Layer => {
  const after = <T>(kind: string, source: Observable<T>): Observable<T> =>
    kind === waits
      ? NEVER
      : gate$.pipe(
          first(),
          restoreAsyncContext(),
          concatMap(() => source),
        );
  return {
    name: 'world',
    priority: Number.MAX_VALUE,
    step: () => (next) => (step) => (step.kind === 'tool' ? after('tool', next(step)) : next(step)),
    model: () => (next) => ({
      ...next,
      stream$: (request, context) => after('model', next.stream$(request, context)),
    }),
  };
};

const call$ = (
  { layers, samples }: Stage,
  callId: string,
  world: World = {},
  use: Use = [],
): Observable<string> => {
  const { input = 'What time is it?', options, tools = [clock], model = noon } = samples;
  const agent = createAgent({ model, tools, use: [...layers, worldLayer(world)] });
  return agent.call$(input, { ...options, callId, use }).pipe(map(({ reason }) => reason));
};

const late = 'late';

/** Makes a call. Resolves to the reason of its reply, the error, or `late`. */
const outcome = (stage: Stage, callId: string, world?: World, use?: Use): Promise<string> =>
  inContextOf(callId, () =>
    lastValueFrom(
      call$(stage, callId, world, use).pipe(
        timeout({ first: 2_000, with: () => of(late) }),
        catchError((error: unknown) => of(`failed: ${messageOf(error)}`)),
      ),
    ),
  );

const failureOf = (reason: string): string | undefined => {
  if (reason === late) return 'The call has not ended within 2 seconds.';
  return reason.startsWith('failed: ') ? `The call ${reason}` : undefined;
};

/** Lets timers and promises that are due run. */
const turns = (): Promise<unknown> => lastValueFrom(interval(0).pipe(first((count) => count > 3)));

const answered: Scene = async (stage) => {
  const reason = await outcome(stage, 'answered');
  checkLeft(stage.edges, 'after the call');
  return failureOf(reason);
};

const checkLeft = ({ calls, fault }: Edges, when: string): void => {
  const open = [...calls.values()].flat().reduce((sum, it) => sum + it.open, 0);
  if (open === 0) return;
  fault('keeps no subscription of next', `is still subscribed to what 'next' returned ${when}`);
};

/** The caller leaves while the call waits. */
const left =
  (waits: 'model' | 'tool'): Scene =>
  async (stage) => {
    let failure: string | undefined;
    const subscription = inContextOf('left', () =>
      call$(stage, 'left', { waits }).subscribe({
        error: (error: unknown) => (failure = `The call failed: ${messageOf(error)}`),
      }),
    );
    await turns();
    subscription.unsubscribe();
    checkLeft(stage.edges, 'after the caller has unsubscribed');
    return failure;
  };

/** An interrupt comes while the call waits, for the world or for the layer. */
const interrupted =
  (world: World): Scene =>
  async (stage) => {
    const { calls, fault } = stage.edges;
    const stop$ = new Subject<string>();
    const reason = outcome(stage, 'interrupted', world, [interruptOn(stop$)]);
    await turns();
    inContextOf('interrupted', () => stop$.next('Stop.'));
    await turns();
    const rule = 'does not swallow an interrupt outside of a step';
    if ([...calls.values()].flat().some(isHeld)) fault(rule, waitsOutside);
    if ((await reason) === late) fault(rule, 'does not let an interrupt end the call');
    return failureOf(await reason);
  };

/** Calls of several users at the same time. Their waits end in the async context of another call. */
const together = async (stage: Stage, ids: readonly string[]): Promise<readonly string[]> => {
  const gate$ = new Subject<void>();
  const reasons = Promise.all(ids.map((id) => outcome(stage, id, { gate$ })));
  const opening$ = interval(0).pipe(
    tap(() => inContextOf('another call', () => gate$.next())),
    takeUntil(from(reasons)),
  );
  await lastValueFrom(opening$, { defaultValue: 0 });
  return reasons;
};

const inContexts: Scene = async (stage) => {
  const reasons = await together(stage, ['ann', 'bob', 'cem']);
  return reasons.map(failureOf).find((failure) => failure !== undefined);
};

/** Equal calls, one after the other and at the same time. */
const alike: Scene = async (stage) => {
  const { calls, fault } = stage.edges;
  const ids = Array.from({ length: 10 }, (_, index) => `call ${index + 1}`);
  const reasons: string[] = [];
  for (const id of ids) reasons.push(await outcome(stage, id));
  reasons.push(...(await together(stage, ['call 11', 'call 12'])));
  const made = [...ids, 'call 11', 'call 12'].map((id, index) =>
    JSON.stringify([calls.get(id)?.map(({ notes }) => notes), reasons[index]]),
  );
  const other = made.findIndex((it) => it !== made[0]);
  if (other > 0) {
    fault(
      'keeps no state between calls',
      `treats call ${other + 1} otherwise than the first, which was equal: keep state in context.local(cell('call', create))`,
    );
  }
  return failureOf(reasons[0] ?? late);
};

/** The scenes of a check. Default: a call that is answered. */
const scenes: Partial<Record<LayerRule, readonly Scene[]>> = {
  'gives back the async context after a wait': [inContexts],
  'keeps no subscription of next': [answered, left('model'), left('tool')],
  'does not swallow an interrupt outside of a step': [
    interrupted({}),
    interrupted({ waits: 'model' }),
    interrupted({ waits: 'tool' }),
  ],
  'keeps no state between calls': [alike],
};
