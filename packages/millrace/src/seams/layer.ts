import type { MonoTypeOperatorFunction, Observable, SchedulerLike } from 'rxjs';
import type { AgentEvent } from '../events.js';
import type { JoinableDemand } from '../flow/demand.js';
import type { Interruption } from '../flow/interruption.js';
import type { Model } from '../models/model.js';
import type { Run } from '../run.js';
import type { Locals, Perform } from '../step.js';
import type { ContextEntry } from '../tools/context-key.js';
import type { CallInfo, CallLabels, Reply } from '../values/reply.js';
import type { InputSchema } from '../values/schema.js';
import type { Call, LoopCall } from './call.js';
import type { Hooks } from './hooks.js';
import type { Interceptor } from './interceptor.js';

/** The context of a call, for its layers and phases. Created once, never changed. Functions of yours take a part: `Pick<Context, 'perform'>`. */
export interface Context {
  readonly info: CallInfo;
  /** Returns the value of a cell of the call or of its family, created on first use. */
  readonly local: Locals;
  /** Performs a step, the only way to ask the outside world. Errors with `invalidState` if the `id` was used before. */
  readonly perform: Perform;
  /** Emits events, and runs them through interceptors. */
  readonly hooks: Hooks;
  /** Events of the call and its sub-agents, from now on. Hot; ends with the call. */
  readonly events$: Observable<AgentEvent>;
  readonly scheduler: SchedulerLike;
  /** Closed while a consumer of the events is too slow: models and tools then wait. */
  readonly demand: JoinableDemand;
  /** Interrupts the call, and holds steps that an interrupt must not cut yet. */
  readonly interruption: Interruption;
  /** The layers of the call, outermost first. */
  readonly layers: readonly Layer[];
  /** Runs work after the last event was delivered, or on unsubscribe. */
  readonly whenOver: (work: () => void) => void;
}

/** Answers a call. Cold; emits one reply and completes. */
export type Answer = (call: Call) => Observable<Reply>;

/**
 * A feature that `use` adds to an agent or a call. Each part is created once per call. A layer gets a call or a step and `next`; it
 * answers with `next`'s value, its own, or an error. An interrupt cuts the step it waits in, and does not end a wait outside a step.
 *
 * This layer waits for an account in a step, so a journal records it and an interrupt cuts it. If questions are left, the reply is that of
 * `next`; otherwise it is an answer of the layer. If the account cannot be loaded, the call fails with that error, which names the layer.
 *
 * @example
 * ```ts
 * import { createAgent, type Layer } from 'millrace';
 * import { answerWith } from 'millrace/call';
 * import { scriptedModel, text } from 'millrace/testing';
 * import { concatMap, type Observable, of } from 'rxjs';
 *
 * interface Account {
 *   readonly questionsLeft: number;
 * }
 *
 * // Answers users who have no questions left without the model.
 * const quota = (load$: (user: string) => Observable<Account>): Layer => ({
 *   name: 'quota',
 *   call: (context) => (next) => (call) => {
 *     const user = context.info.metadata['userId'] ?? 'guest';
 *     return context
 *       .perform<Account>({
 *         kind: 'account',
 *         id: 'account',
 *         input: user,
 *         run: () => load$(user),
 *         cut: () => of({ questionsLeft: 0 }),
 *       })
 *       .pipe(
 *         concatMap(({ questionsLeft }) =>
 *           questionsLeft > 0 ? next(call) : answerWith(context, call, 'You have no questions left.'),
 *         ),
 *       );
 *   },
 * });
 *
 * const accounts = (user: string) => of({ questionsLeft: user === 'ada' ? 9 : 0 });
 * const agent = createAgent({ model: scriptedModel([text('Four.')]), use: [quota(accounts)] });
 * for (const userId of ['ada', 'bob']) {
 *   console.log((await agent.call('2 + 2?', { metadata: { userId } })).text);
 * }
 * ```
 *
 * ```text
 * Four.
 * You have no questions left.
 * ```
 */
export interface Layer {
  /** The name in errors and for `single`. */
  readonly name: string;
  /** Its place: lower is further out. By `layerPlaces`, the journal (30) records the input before `preCall` (52) is emitted. Default: 100. */
  readonly priority?: number;
  /** Also applies to sub-agents; with `voice`, only to those whose text is shown as that of this agent. */
  readonly inherit?: true | 'voice';
  /** Fields of `CallInfo`, events and tool contexts. They cannot replace a standard field. */
  readonly labels?: CallLabels;
  /** Values of context keys. They override those of the agent. */
  readonly context?: readonly ContextEntry[];
  /** Replaces an earlier layer of the same name. An inherited one replaces the sub-agent's own. */
  readonly single?: true;
  /**
   * Wraps the whole call, from before its first event until after its last, outside of every `call`. An error before
   * it subscribes fails the call before any layer starts.
   */
  readonly record?: (context: Context) => <T>(call$: Observable<T>) => Observable<T>;
  /**
   * Wraps the call: passes it on with `next(call)`, edited or not, no more than once; answers it, for example with `answerWith`; or
   * errors, which fails the call. Emits one reply, which is passed on when the layer completes. An interrupt ends a wait in
   * a step (`context.perform`) with the value of its cut; no interrupt ends a wait outside a step.
   * To end the call, trigger `context.interruption`, and list `interruptLayer` with the layer (`use: [[interruptLayer, mine]]`); unsubscribing from `next(call)` reports nothing.
   */
  readonly call?: (context: Context) => (next: Answer) => Answer;
  /**
   * Wraps every step: pass it on with `next(step)`, end it with `step.cut(why)`, or error, which fails the call.
   * Completing empty cuts it with the reason `interrupted`, so outer layers always see one value.
   */
  readonly step?: (context: Context) => (next: Perform) => Perform;
  /** Wraps every model of the call. An error it throws fails the call. */
  readonly model?: (context: Context) => (next: Model) => Model;
  /** Edits the list of phases of a turn. Inner layers edit first, and of equal ones the earlier. */
  readonly turn?: (phases: readonly PhaseFactory[]) => readonly PhaseFactory[];
  /** Interceptors and watchers. Within a layer, they are inherited with it. */
  readonly on?: readonly Interceptor[];
}

/** A layer that sets the type of `reply.output` by its schema. */
export interface OutputLayer<
  out Output extends InputSchema | undefined = InputSchema | undefined,
> extends Layer {
  readonly schema: Output;
}

/** The option `use`: layers, interceptors, and lists of layers that belong together. */
export type Use<Output extends InputSchema | undefined = InputSchema | undefined> =
  // `[]` makes TypeScript keep the types of the items of a literal list.
  | readonly (
      Layer | OutputLayer<Output> | readonly (Layer | OutputLayer<Output>)[] | readonly []
    )[]
  | readonly [];

/**
 * One operator of a turn, from run to run, created for each call by a `PhaseFactory`.
 *
 * A phase emits exactly one run for each run: the same, or one that a transition such as `note` or `append` returns. A run never changes,
 * so state for the next turn is a value of the run, under a `runKey`. What a phase asks of the outside world goes through `context.perform`;
 * `consult$` asks a model beside the loop, that of the call or another one.
 *
 * @example
 * ```ts
 * import { createAgent, textOf, tool } from 'millrace';
 * import {
 *   insertBefore,
 *   note,
 *   phase,
 *   type PhaseFactory,
 *   reasoning,
 *   runKey,
 * } from 'millrace/phases';
 * import { scriptedModel, text, toolCall } from 'millrace/testing';
 *
 * const asked = runKey('asked', 0);
 *
 * // Shows the model how often it has been asked.
 * const counting: PhaseFactory = (_context, { limits }) =>
 *   phase((run) => {
 *     const count = asked.of(run) + 1;
 *     const shown = note(run, 'Progress', `Request ${count} of up to ${limits.maxIterations}.`);
 *     return asked.set(shown, count);
 *   });
 *
 * const clock = tool({ name: 'clock', description: 'Returns the time.', run: () => '12:00' });
 * const model = scriptedModel([toolCall('clock')], [text('Noon.')]);
 * const agent = createAgent({ model, tools: [clock], use: [insertBefore(reasoning, counting)] });
 * await agent.call('What time is it?');
 * for (const { messages } of model.requests) {
 *   console.log(messages.map(textOf).find((shown) => shown.includes('Progress')));
 * }
 * ```
 *
 * ```text
 * [Progress]
 * Request 1 of up to 10.
 * [Progress]
 * Request 2 of up to 10.
 * ```
 */
export type Phase = MonoTypeOperatorFunction<Run>;

/** Creates a phase for a call. */
export type PhaseFactory = (context: Context, call: LoopCall) => Phase;
