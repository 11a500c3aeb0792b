import { AsyncLocalStorage } from 'node:async_hooks';
import { trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import {
  type Agent,
  type CallInfo,
  type CallOptions,
  createAgent,
  type Layer,
  type Model,
  onCall,
  type Step,
  textOf,
  tool,
  watch,
} from '@millrace/core';
import { insertBefore, phase, reasoning } from '@millrace/core/phases';
import { finish, text, toolCall } from '@millrace/core/testing';
import { otel } from '@millrace/otel';
import { concat, defer, delay, mergeMap, Observable, of, Subject, take, tap } from 'rxjs';

/** The user of a request, as a web framework sets it. */
export const user = new AsyncLocalStorage<string>();
/** What a layer of the program sets around `next`: for a whole call, and for one step. */
const callOfLayer = new AsyncLocalStorage<string>();
const stepOfLayer = new AsyncLocalStorage<string>();

export const users = ['ann', 'bob', 'cem'] as const;
export type User = (typeof users)[number];

/** A layer of the program: it runs the call, each step and each request in a context of its own. */
const around: Layer = {
  name: 'around',
  // Outside of sessions and their queues.
  priority: 20,
  call:
    ({ call }) =>
    (next) =>
    (it) =>
      within(callOfLayer, call.metadata['userId'] ?? it.input.map(textOf).join(), () => next(it)),
  step:
    () =>
    (next) =>
    <T>(step: Step<T>) =>
      within(stepOfLayer, step.id, () => next(step)),
};

const within = <T>(
  storage: AsyncLocalStorage<string>,
  value: string,
  work: () => Observable<T>,
): Observable<T> =>
  new Observable((subscriber) => storage.run(value, () => work().subscribe(subscriber)));

export const contextManager = new AsyncLocalStorageContextManager();
const tracerProvider = new BasicTracerProvider();

/** What the program adds to its agent. Each wait is played with each of them. */
export const variants: Readonly<
  Record<'alone' | 'otel()' | 'als.run around next', readonly Layer[]>
> = {
  alone: [],
  'otel()': [otel({ tracerProvider })].flat(),
  'als.run around next': [around],
};
export type Variant = keyof typeof variants;

/** Ends the waits of all users, in the context of somebody else. */
const gate$ = new Subject<void>();
const open = (): void => user.run('somebody else', () => gate$.next());

/** Waits until somebody else opens the gate. */
export const gated = <T>(value: T): Observable<T> =>
  gate$.pipe(
    take(1),
    mergeMap(() => of(value)),
  );

/** Passes each value on when somebody else opens the gate. */
export const gating = <T>(source: Observable<T>): Observable<T> => source.pipe(mergeMap(gated));

export interface Parts {
  /** Notes that something of a user's call runs. */
  readonly see: (what: string, who: string) => void;
  /** Calls these tools one after another, then `who`, and answers. */
  readonly asking: (...names: readonly string[]) => Model;
  readonly model: Model;
  readonly tools: readonly ReturnType<typeof tool>[];
  readonly use: readonly Layer[];
}

export type Ask = (
  who: User,
  options: CallOptions & { readonly callId: string },
) => PromiseLike<unknown>;

/** A wait: makes what the users share, and returns how one of them asks. */
export interface Wait {
  readonly name: string;
  readonly share: (parts: Parts) => Ask | Promise<Ask>;
  /** Kinds that do not run, such as the tool of a call that is interrupted before. */
  readonly without?: readonly string[];
  /** Tools start before their steps. */
  readonly isEarly?: boolean;
  /** The calls are made within a step of another one. */
  readonly isNested?: boolean;
}

/** Plays a wait for three users at once. Returns what did not run in the context of its call, and what did not run at all. */
export const play = async (wait: Wait, variant: Variant): Promise<readonly string[]> => {
  const seen = new Map<string, Set<string>>();
  const wrong: string[] = [];
  const traces = new Map<string, string>();
  const see: See = (what, who, given = 'anywhere') => {
    const place = wait.isEarly === true ? 'anywhere' : given;
    seen.set(who, (seen.get(who) ?? new Set()).add(what));
    const find = (problem: string): void => void wrong.push(`${what} of ${who} ${problem}`);
    if (user.getStore() !== who) find(`runs as ${user.getStore()}`);
    if (variant === 'als.run around next' && place !== 'anywhere') {
      const call = callOfLayer.getStore();
      if (call !== who) find(`is in the layer of a call of ${call}`);
      const isInStep = stepOfLayer.getStore() !== undefined;
      if (isInStep !== (place === 'step' || wait.isNested === true))
        find(isInStep ? 'is in a step' : 'is in no step');
    }
    if (variant === 'otel()' && place === 'step' && (what === 'model' || what === 'tool')) {
      const traceId = trace.getActiveSpan()?.spanContext().traceId ?? 'none';
      const owner = traces.get(traceId) ?? who;
      traces.set(traceId, owner);
      if (traceId === 'none') find('has no active span');
      else if (owner !== who) find(`is in a trace of ${owner}`);
    }
  };
  const ask = await wait.share(partsOf(see, variants[variant]));
  const timer = setInterval(open, 2);
  try {
    await Promise.all(
      users.map((who, index) =>
        user.run(who, () => ask(who, { callId: `${who}-${index}`, metadata: { userId: who } })),
      ),
    );
  } finally {
    clearInterval(timer);
  }
  const missing = users.flatMap((who) =>
    kinds
      .filter((kind) => !wait.without?.includes(kind) && !seen.get(who)?.has(kind))
      .map((kind) => `${kind} of ${who} did not run`),
  );
  return [...new Set([...wrong, ...missing])];
};

/** What of a call must run in its context. */
const kinds = ['model', 'tool', 'preReasoning', 'preActing', 'postActing', 'postCall', 'phase'];

type See = (what: string, who: string, place?: 'step' | 'between' | 'anywhere') => void;

const partsOf = (see: See, use: readonly Layer[]): Parts => {
  const callers = new Map<string, string>();
  const whoOf = ({ callId }: Pick<CallInfo, 'callId'>): string => callers.get(callId) ?? 'nobody';
  const asking: Parts['asking'] = (...names) => ({
    name: 'scripted',
    stream$: ({ messages }, { callId = '' }) =>
      defer(() => {
        see('model', whoOf({ callId }), 'step');
        const question = messages.findLastIndex(({ role }) => role === 'user');
        const results = messages.slice(question).filter(({ role }) => role === 'tool');
        const name = [...names, 'who'][results.length];
        const chunk = name === undefined ? text('Done.') : toolCall(name);
        return concat(of(chunk), of(finish()).pipe(delay(4)));
      }),
  });
  const seeing = (
    type: 'preReasoning' | 'preActing' | 'postActing' | 'postCall',
    place?: 'step',
  ): Layer => onCall(type, (call) => tap(() => see(type, whoOf(call), place)));
  const who = tool({
    name: 'who',
    description: 'Who asks?',
    run: (_, context) => {
      see('tool', whoOf(context), 'step');
      return user.getStore() ?? 'nobody';
    },
  });
  return {
    see,
    asking,
    model: asking(),
    tools: [who],
    use: [
      ...use,
      watch((event, call) => {
        // A chat server has no metadata without users: there, the question is the name.
        if (event.type === 'preCall')
          callers.set(call.callId, call.metadata['userId'] ?? event.input.map(textOf).join());
        see(event.type, whoOf(call));
      }),
      seeing('preReasoning', 'step'),
      seeing('preActing', 'step'),
      seeing('postActing', 'step'),
      seeing('postCall'),
      {
        ...insertBefore(reasoning, ({ call }) =>
          phase((run) => {
            see('phase', whoOf(call), 'between');
            return run;
          }),
        ),
        // Steps of a call that cannot be interrupted have fewer layers around them.
        info: { observes: true },
      },
    ],
  };
};

/** An agent of these parts, with more layers. */
export const agentOf = ({ model, tools, use }: Parts, ...layers: readonly Layer[]): Agent =>
  createAgent({ model, tools, use: [...layers, ...use] });
