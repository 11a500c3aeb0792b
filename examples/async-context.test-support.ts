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
  type ToolContext,
  watch,
} from 'millrace';
import { insertBefore, phase, reasoning } from 'millrace/phases';
import { finish, text, toolCall } from 'millrace/testing';
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
    ({ info: call }) =>
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

/** Notes that something of a user's call runs: within any step, within this one, or between steps. */
type See = (
  what: string,
  who: string,
  place?: 'step' | 'between' | 'anywhere',
  step?: string,
) => void;

/** Tools that a model calls: one, several, or with inputs. */
type Turn = string | readonly string[] | Readonly<Record<string, Record<string, unknown>>>;

export interface Parts {
  readonly see: See;
  /** The user of a call that has begun. */
  readonly userOf: (callId: string) => string | undefined;
  /** Notes that something runs for one user, whoever that is. */
  readonly seeShared: (what: string) => void;
  /** Calls these tools, those of a list at once, then `who`, and answers. */
  readonly asking: (...turns: readonly Turn[]) => Model;
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
  /** What must run besides those kinds. */
  readonly also?: readonly string[];
  /** Kinds that do not run, such as the tool of a call that is interrupted before. */
  readonly without?: readonly string[];
  /** Tools start before their steps. */
  readonly isEarly?: boolean;
  /** A tool is cut, and fails. */
  readonly isCut?: boolean;
  /** The calls are made within a step of another one, all of them or those of sub-agents. */
  readonly isNested?: boolean | 'partly';
}

/** Plays a wait for three users at once. Returns what did not run in the context of its call, and what did not run at all. */
export const play = async (wait: Wait, variant: Variant): Promise<readonly string[]> => {
  const seen = new Map<string, Set<string>>();
  const wrong: string[] = [];
  const traces = new Map<string, string>();
  const { isNested = false } = wait;
  const see: See = (what, who, given = 'anywhere', step = undefined) => {
    const place = wait.isEarly === true ? 'anywhere' : given;
    seen.set(who, (seen.get(who) ?? new Set()).add(what));
    const find = (problem: string): void => void wrong.push(`${what} of ${who} ${problem}`);
    if (user.getStore() !== who) find(`runs as ${user.getStore()}`);
    if (variant === 'als.run around next' && place !== 'anywhere') {
      const call = callOfLayer.getStore();
      if (call !== who) find(`is in the layer of a call of ${call}`);
      const isInStep = stepOfLayer.getStore() !== undefined;
      if (isInStep !== (place === 'step' || isNested === true) && !(isInStep && isNested))
        find(isInStep ? 'is in a step' : 'is in no step');
      if (step !== undefined && !isNested && stepOfLayer.getStore() !== step)
        find(`is in the step ${stepOfLayer.getStore()} instead of ${step}`);
    }
    if (variant === 'otel()' && place === 'step' && (what === 'model' || what === 'tool')) {
      const traceId = trace.getActiveSpan()?.spanContext().traceId ?? 'none';
      const owner = traces.get(traceId) ?? who;
      traces.set(traceId, owner);
      if (traceId === 'none') find('has no active span');
      else if (owner !== who) find(`is in a trace of ${owner}`);
    }
  };
  const timer = setInterval(open, 2);
  try {
    const ask = await wait.share(partsOf(see, variants[variant], wait.isCut === true));
    await Promise.all(
      users.map((who, index) =>
        user.run(who, () => ask(who, { callId: `${who}-${index}`, metadata: { userId: who } })),
      ),
    );
  } finally {
    clearInterval(timer);
  }
  const missing = users.flatMap((who) =>
    [...kinds, ...(wait.also ?? [])]
      .filter((kind) => !wait.without?.includes(kind) && !seen.get(who)?.has(kind))
      .map((kind) => `${kind} of ${who} did not run`),
  );
  return [...new Set([...wrong, ...missing])];
};

/** What of a call must run in its context. */
export const kinds = [
  'model',
  'tool',
  'preReasoning',
  'preActing',
  'postActing',
  'postCall',
  'phase',
];

/** The step of a tool call of `asking()`. */
export const stepOf = ({ iteration, toolCallId }: Pick<ToolContext, 'iteration' | 'toolCallId'>) =>
  `${iteration}/${toolCallId.split('/').at(-1) ?? ''}`;

const wantedIn = (turn: Turn): readonly (readonly [string, Record<string, unknown>])[] =>
  typeof turn === 'string' || Array.isArray(turn)
    ? [turn].flat().map((name: string) => [name, {}] as const)
    : Object.entries(turn);

const partsOf = (see: See, use: readonly Layer[], isCut: boolean): Parts => {
  const callers = new Map<string, string>();
  const whoOf = ({ callId, metadata }: Pick<CallInfo, 'callId'> & Partial<CallInfo>): string => {
    const known = callers.get(callId) ?? metadata?.['userId'];
    if (known !== undefined) callers.set(callId, known);
    return known ?? 'nobody';
  };
  const asking: Parts['asking'] = (...turns) => ({
    name: 'scripted',
    stream$: ({ messages }, { callId = '' }) =>
      defer(() => {
        see('model', whoOf({ callId }), 'step');
        const question = messages.findLastIndex(({ role }) => role === 'user');
        const turn = messages.slice(question).filter(({ role }) => role === 'assistant').length;
        const wanted = wantedIn([...turns, 'who'][turn] ?? []);
        const chunks = wanted.map(([name, input], at) =>
          toolCall(name, input, `${callId}/${messages.length}/${at}`),
        );
        return concat(
          chunks.length === 0 ? of(text('Done.')) : chunks,
          of(finish()).pipe(delay(4)),
        );
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
      see('tool', whoOf(context), 'step', stepOf(context));
      return user.getStore() ?? 'nobody';
    },
  });
  return {
    see,
    userOf: (callId) => callers.get(callId),
    seeShared: (what) => see(what, users.find((it) => it === user.getStore()) ?? 'any user'),
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
        // A tool that was not called rightly would not wait.
        if (event.type === 'postActing' && event.result.isError && !isCut)
          see(`${event.toolCall.name} failed: ${textOf(event.result)}`, 'nobody');
      }),
      seeing('preReasoning', 'step'),
      seeing('preActing', 'step'),
      seeing('postActing', 'step'),
      seeing('postCall'),
      {
        ...insertBefore(reasoning, ({ info: call }) =>
          phase((run) => {
            see('phase', whoOf(call), 'between');
            return run;
          }),
        ),
        // Steps of a call that cannot be interrupted have fewer layers around them.
      },
    ],
  };
};

/** An agent of these parts, with more layers. */
export const agentOf = ({ model, tools, use }: Parts, ...layers: readonly Layer[]): Agent =>
  createAgent({ model, tools, use: [...layers, ...use] });
