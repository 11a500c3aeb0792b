import {
  type EventOf,
  type Layer,
  type Context,
  type Model,
  type ModelRequest,
  onCall,
  type Perform,
  type RequestOptions,
  watch,
} from 'millrace';
import { interruptLayer } from 'millrace/call';
import { isRecord, isSameInput } from 'millrace/values';
import { watchExchanges } from '@millrace/wire/watch';
import {
  concatMap,
  defer,
  dematerialize,
  finalize,
  ignoreElements,
  materialize,
  merge,
  type Observable,
  of,
  pipe,
  tap,
} from 'rxjs';
import type { Clock } from './clock.js';
import { type Halt, holdable, type HoldableEvent } from './holds.js';
import type { Hub } from './hub.js';
import type { BeforeModel, LayerEntry, Mark } from './page/protocol.js';

/** The controls of a running call. */
export interface Inspected {
  /** Interrupts it; false if it cannot be interrupted any more. */
  readonly interrupt: (message: string | undefined) => boolean;
  /** Whether a layer of its own records it. */
  readonly hasJournal: boolean;
}

export interface Inspecting {
  readonly hub: Hub;
  /** The clock that a call runs by, if it can stand still. */
  readonly clockOf: (context: Context) => Clock | undefined;
  /** Called as a root call begins; the returned function at its end. */
  readonly begin: (context: Context, call: Inspected) => () => void;
}

/** Outside of all other layers and interceptors, or within all. */
const outermost = -1_000_000_000;
const innermost = 1_000_000_000;

/** The layers of inspected calls: they note what no event shows, and hold events at breakpoints. */
export const inspecting = (options: Inspecting): readonly Layer[] => {
  const { hub } = options;
  const calls: Calls = new Map();
  const noted = (context: Context): Noted => {
    const { rootId, callId } = context.info;
    const known =
      calls.get(callId) ??
      createNoted(context, (mark) => {
        hub.log(rootId).mark(mark);
        hub.changed();
      });
    calls.set(callId, known);
    return known;
  };
  return [interruptLayer, seeing(options, calls, noted), holding(options, calls, noted)];
};

type Calls = Map<string, Noted>;

type NotedOf = (context: Context) => Noted;

/** Notes what comes to interceptors, and the steps. */
const seeing = ({ hub, begin }: Inspecting, calls: Calls, noted: NotedOf): Layer => ({
  name,
  priority: outermost,
  inherit: true,
  record: (context) => {
    const { info: call, layers, interruption } = context;
    const { callId, rootId, parentId } = call;
    const end =
      parentId === undefined
        ? begin(context, {
            interrupt: (message) => interruption.trigger(message === undefined ? {} : { message }),
            hasJournal: layers.some((layer) => layer.name === 'journal'),
          })
        : () => undefined;
    hub.layers(rootId, callId, entriesOf(layers));
    return finalize(() => {
      noted(context).close();
      calls.delete(callId);
      end();
    });
  },
  step: (context) => (next) => markingSteps(next, noted(context)),
  on: [
    ...holdable.map((type) =>
      onCall(type, ({ callId }) => tap<HoldableEvent>((event) => calls.get(callId)?.enter(event)), {
        name,
        priority: outermost,
      }),
    ),
    watch(
      (event, { callId }) => {
        if (event.type === 'vetoed') calls.get(callId)?.vetoed(event);
      },
      { name },
    ),
  ],
});

/** Notes what comes from interceptors, and the requests, and holds events. */
const holding = ({ hub, clockOf }: Inspecting, calls: Calls, noted: NotedOf): Layer => ({
  name,
  priority: innermost,
  inherit: true,
  model: (context) => (next) => markingRequests(next, hub, context, noted(context)),
  on: holdable.map((type) =>
    onCall(
      type,
      ({ callId }) =>
        pipe(
          concatMap((event: HoldableEvent) => {
            const call = calls.get(callId);
            call?.leave(event);
            if (call === undefined || !hub.holds.wants(event)) return of(event);
            return hub.holds.hold$(event, haltOf(call, clockOf(call.context)));
          }),
          tap((event) => calls.get(callId)?.ask(event)),
        ),
      { name, priority: innermost },
    ),
  ),
});

const name = 'devtools';

/** The marks of one call. */
interface Noted {
  readonly context: Context;
  readonly mark: (mark: Unplaced) => void;
  /** An event comes to its interceptors, or from them. */
  readonly enter: (event: HoldableEvent) => void;
  readonly leave: (event: HoldableEvent) => void;
  readonly vetoed: (event: EventOf<'vetoed'>) => void;
  /** An event goes to the loop. */
  readonly ask: (event: HoldableEvent) => void;
  /** The request as a model got it, if it differs from the last event of a request. */
  readonly sent: (request: ModelRequest) => BeforeModel | undefined;
  /** Closes what is open: the call has ended. */
  readonly close: () => void;
  readonly nextId: (kind: string) => string;
}

/** A mark without its time and call. */
type Unplaced = Mark extends infer Each ? Without<Each> : never;
type Without<Each> = Each extends Mark ? Omit<Each, 'at' | 'callId'> : never;

/** Each interceptor of a tool call gets an event of its own. */
const isSameEvent = (one: HoldableEvent, other: HoldableEvent): boolean =>
  one === other ||
  (one.type === 'preActing' &&
    other.type === 'preActing' &&
    isSameInput(one.toolCall, other.toolCall));

type Passage = Extract<Unplaced, { readonly mark: 'interceptors' }>;

const createNoted = (context: Context, add: (mark: Mark) => void): Noted => {
  const { info: call, layers, scheduler } = context;
  const { callId } = call;
  const open = new Map<string, { readonly passage: Passage; readonly event: HoldableEvent }>();
  let count = 0;
  let asked: BeforeModel | undefined;
  const mark = (unplaced: Unplaced): void => {
    add({ ...unplaced, at: scheduler.now(), callId });
  };
  const nextId = (kind: string): string => `${callId}#${kind}${(count += 1)}`;
  const end = (key: string, phase: Passage['phase'], event?: HoldableEvent): void => {
    const entered = open.get(key);
    if (entered === undefined) return;
    open.delete(key);
    const isEdited = event !== undefined && !isSameEvent(event, entered.event);
    mark({ ...entered.passage, phase, ...(isEdited && { isEdited }) });
  };
  const namesOf = new Map(holdable.map((type) => [type, interceptorsOf(layers, type)]));
  return {
    context,
    mark,
    nextId,
    enter: (event) => {
      const names = namesOf.get(event.type) ?? [];
      if (names.length === 0) return;
      const about = 'toolCall' in event ? { toolCallId: event.toolCall.id } : {};
      const base = { mark: 'interceptors', of: event.type, names, ...about } as const;
      const passage: Passage = { ...base, id: nextId('i'), phase: 'started' };
      open.set(keyOf(event), { passage, event });
      mark(passage);
    },
    leave: (event) => {
      end(keyOf(event), 'ended', event);
    },
    vetoed: ({ of: owner, toolCallId, iteration }) => {
      end(`${owner} ${toolCallId ?? iteration}`, 'vetoed');
    },
    ask: (event) => {
      if ('messages' in event && 'options' in event) asked = event;
    },
    sent: ({ messages, ...options }) => {
      if (asked === undefined) return undefined;
      const isSame = isSameList(messages, asked.messages) && isSameOptions(options, asked.options);
      return isSame ? undefined : { messages, options };
    },
    close: () => {
      for (const key of [...open.keys()]) end(key, 'cancelled');
    },
  };
};

const isSameList = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  one === other ||
  (one.length === other.length && one.every((item, index) => item === other[index]));

/** Whether options are the same. Each request has lists of its own, with the same items. */
const isSameOptions = (one: RequestOptions, other: RequestOptions): boolean =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])].every((key) => {
    const own: unknown = Reflect.get(one, key);
    const before: unknown = Reflect.get(other, key);
    return (
      own === before || (Array.isArray(own) && Array.isArray(before) && isSameList(own, before))
    );
  });

/** Distinguishes the events that pass interceptors at the same time. */
const keyOf = (event: HoldableEvent): string =>
  `${event.type} ${'toolCall' in event ? event.toolCall.id : event.iteration}`;

const interceptorsOf = (layers: readonly Layer[], type: string): readonly string[] =>
  layers
    .flatMap((layer) => (layer.name === name ? [] : hooksOf(layer)))
    .flatMap((hook) => (hook.type === type ? [hook.name] : []));

/** The interceptors of a layer, which may be one itself. */
const hooksOf = (layer: Layer): readonly { readonly name: string; readonly type: string }[] =>
  [...('hook' in layer ? [layer] : []), ...(layer.on ?? [])].flatMap((each) => {
    const hook: unknown = Reflect.get(each, 'hook');
    return isRecord(hook) && hook['kind'] === 'event'
      ? [{ name: each.name, type: String(hook['type']) }]
      : [];
  });

const entriesOf = (layers: readonly Layer[]): readonly LayerEntry[] =>
  layers
    .filter((layer) => layer.name !== name)
    .map((layer) => ({ name: layer.name, priority: layer.priority ?? 100, parts: partsOf(layer) }));

const partsOf = (layer: Layer): readonly string[] => [
  ...(['open', 'call', 'step', 'model', 'turn'] as const).filter((part) => part in layer),
  ...hooksOf(layer).map(({ type }) => `on ${type}`),
];

/** Kinds of steps that journals keep under a former name. */
const stepNames: ReadonlyMap<string, string> = new Map([['seat', 'queue']]);

/** Marks the subscriptions to the steps of a call. */
const markingSteps =
  (next: Perform, { mark }: Noted): Perform =>
  (step) =>
    defer(() => {
      const { id, kind, cut } = step;
      const at = { mark: 'step', id, kind: stepNames.get(kind) ?? kind } as const;
      let isCut = false;
      let isMarked = false;
      const end = (phase: 'ended' | 'failed' | 'cut' | 'cancelled'): void => {
        if (isMarked) return;
        isMarked = true;
        mark({ ...at, phase });
      };
      const seen = cut && {
        // eslint-disable-next-line rxjs-x/finnish -- named as the part of a step
        cut: (why: Parameters<typeof cut>[0]) => {
          isCut = true;
          return cut(why);
        },
      };
      const done = (): void => {
        end(isCut ? 'cut' : 'ended');
      };
      mark({ ...at, phase: 'started' });
      return next({ ...step, ...seen }).pipe(
        // The next steps run before this one completes.
        tap({
          next: done,
          complete: done,
          error: () => {
            end('failed');
          },
        }),
        finalize(() => {
          end('cancelled');
        }),
      );
    });

/** A source, and a handler for the values of another one while it runs. */
const watching = <T, Level>(
  source: Observable<T>,
  level$: Observable<Level>,
  handle: (level: Level) => void,
): Observable<T> =>
  // The end of the source, as a value, ends the other one.
  merge(level$.pipe(tap(handle), ignoreElements()), source.pipe(materialize())).pipe(
    dematerialize(),
  );

/** Marks the subscriptions to a model, and when their consumers stop them. */
const markingRequests = (
  model: Model,
  { exchanges }: Pick<Hub, 'exchanges'>,
  { demand }: Context,
  noted: Noted,
): Model => ({
  ...model,
  stream$: (request, context) =>
    defer(() => {
      const { mark, nextId } = noted;
      const at = { mark: 'request', messageId: context.stepId, model: model.name } as const;
      const id = nextId('r');
      const sent = noted.sent(request);
      let phase: 'ended' | 'failed' | 'cancelled' = 'cancelled';
      let isOpen = demand.isOpen;
      const level = (now: boolean): void => {
        if (now === isOpen) return;
        isOpen = now;
        mark({ mark: 'demand', isOpen });
      };
      mark({ ...at, id, phase: 'started', ...(sent !== undefined && { sent }) });
      const watched = watchExchanges(context, (exchange, index) => {
        exchanges.note(id, exchange, index);
      });
      return watching(model.stream$(request, watched), demand.open$, level).pipe(
        tap({
          next: (chunk) => {
            // Its consumer leaves after the last chunk.
            if (chunk.type === 'finish') phase = 'ended';
          },
          complete: () => (phase = 'ended'),
          error: () => (phase = 'failed'),
        }),
        finalize(() => {
          level(true);
          mark({ ...at, id, phase });
        }),
      );
    }),
});

const haltOf = ({ context, mark }: Noted, clock: Clock | undefined): Halt => ({
  now: () => context.scheduler.now(),
  stop: () => clock?.stop() ?? (() => undefined),
  mark: ({ at: _, callId: __, ...unplaced }) => {
    mark(unplaced);
  },
});
