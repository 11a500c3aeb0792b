import { defer, finalize, type Observable, of, type SchedulerLike } from 'rxjs';
import type { Eventual } from './flow/eventual.js';
import { createOffTime } from './flow/deadline.js';
import type { ToolResultBlock, ToolCallBlock } from './values/message.js';

/**
 * A question to the outside world: a model request, the decision to run a tool, a tool call, a load of memory.
 *
 * `perform` runs a step through the layers of its call, and emits its one value. A journal stores the value under the `id`, with `form`, and a
 * resumed call gets it back without a second `run`. A layer may run a step again, which counts the attempt, and an interrupt ends it by `cut`.
 *
 * @example
 * ```ts
 * import { createAgent, type Layer, type Step, textOf } from 'millrace';
 * import { addNote } from 'millrace/call';
 * import { scriptedModel, text } from 'millrace/testing';
 * import { concatMap, type Observable, of, retry, throwError } from 'rxjs';
 *
 * // Shows the weather to the model.
 * const weather = (load$: (attempt: number) => Observable<string>): Layer => ({
 *   name: 'weather',
 *   call: (context) => (next) => (call) => {
 *     const step: Step<string> = {
 *       kind: 'weather',
 *       id: 'weather',
 *       input: 'Oslo',
 *       run: (attempt) => load$(attempt),
 *       cut: () => of('unknown'),
 *       form: { isWritten: (written) => typeof written === 'string' },
 *     };
 *     return context
 *       .perform(step)
 *       .pipe(concatMap((report) => next(addNote(call, 'Weather', report))));
 *   },
 * });
 *
 * // Loads it again once if that fails.
 * const again: Layer = {
 *   name: 'again',
 *   step: () => (next) => (step) =>
 *     step.kind === 'weather' ? next(step).pipe(retry(1)) : next(step),
 * };
 *
 * const load$ = (attempt: number) => {
 *   console.log(`Attempt ${attempt}`);
 *   return attempt === 1 ? throwError(() => new Error('down')) : of('It snows.');
 * };
 * const model = scriptedModel([text('Take a coat.')]);
 * const agent = createAgent({ model, use: [weather(load$), again] });
 * console.log((await agent.call('What do I wear?')).text);
 * console.log(model.requests[0]?.messages.map(textOf));
 * ```
 *
 * ```text
 * Attempt 1
 * Attempt 2
 * Take a coat.
 * [ 'What do I wear?', '[Weather]\nIt snows.' ]
 * ```
 */
export interface Step<T> {
  /**
   * `model`, `intent` (whether and how a tool runs) and `tool` in the loop. A `wait` is not recorded, its `id` may repeat, and an interrupt
   * ends it also while recorded steps are replayed. Layers add kinds of their own.
   */
  readonly kind: 'model' | 'intent' | 'tool' | (string & {});
  /** The position in the call, unique, and the same when the call is replayed: `3`, `3/0`, `3/0/intent`, `open`. */
  readonly id: string;
  /** The model request, or the tool call of an `intent` or a `tool` step. */
  readonly input: unknown;
  /** Cold; emits one value and completes. Attempts count from 1. Tool errors and vetoes are values; an error is fatal. */
  // A verb, as `perform` is: `step.run(1)`.
  // eslint-disable-next-line rxjs-x/finnish
  readonly run: (attempt: number) => Observable<T>;
  /** Ends the step early with a partial value, and reports due events. Not called after `run` emitted. Default: not cut. */
  readonly cut?: (why: Cut) => Observable<T>;
  /** The step may complete empty. */
  readonly optional?: true;
}

/** A step of the kernel, which may need no Observable. Layers and phases see it as a `Step`. */
export interface KernelStep<T> extends Omit<Step<T>, 'run' | 'cut'> {
  readonly work: (attempt: number) => Eventual<T>;
  readonly cut?: (why: Cut) => Eventual<T>;
}

export interface Cut {
  /** One word for outer layers: `interrupted`, `timeout`, `quota`. */
  readonly reason: string;
  /** Replaces the tool result, or the reply for a model message. Default: "interrupted", and the partial message. */
  readonly message?: string;
}

/** Performs a step, the only way to ask the outside world. Emits exactly one value; optional steps may be empty, and nothing is emitted once the observer of the call has left. */
export type Perform = <T>(step: Step<T>) => Observable<T>;

/** The value of a `tool` step, as far as layers may read it. */
export interface ToolStepResult {
  /** The tool call as it ran, with the edits of interceptors. */
  readonly toolCall: ToolCallBlock;
  readonly result: ToolResultBlock;
  readonly executed: boolean;
  /** Whether it failed or could not start. A denied tool call has not failed. */
  readonly failed: boolean;
}

/** Reads the value of a `tool` step; `undefined` for a step of another kind. */
export const toolResultOf = (
  { kind }: Pick<Step<unknown>, 'kind'>,
  value: unknown,
): ToolStepResult | undefined =>
  // Only the loop makes steps of this kind.
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  kind === 'tool' ? (value as ToolStepResult) : undefined;

/** Waits for a source in an unrecorded step of kind `wait`. Emits `undefined` if an interrupt ends it. */
export const waited$ = <T>(
  { perform }: { readonly perform: Perform },
  id: string,
  source: Observable<T>,
): Observable<T | undefined> =>
  perform<T | undefined>({
    kind: 'wait',
    id,
    input: undefined,
    run: () => source,
    cut: () => of(undefined),
  });

/** A mutable value of a layer for a call or a family of calls, shared by the layer's steps, models and phases. */
export interface Cell<T> {
  readonly of: 'call' | 'family';
  readonly create: () => T;
}

/** Creates a cell: one value per `call`, or one per `family` (a call and its sub-agents at any depth). */
export const cell = <T>(scope: Cell<T>['of'], create: () => T): Cell<T> => ({
  of: scope,
  create,
});

export type Locals = <T>(cell: Cell<T>) => T;

export const createLocals = (family: Map<Cell<unknown>, unknown>): Locals => {
  const own = new Map<Cell<unknown>, unknown>();
  return <T>(key: Cell<T>) => {
    const cells = key.of === 'call' ? own : family;
    if (!cells.has(key)) cells.set(key, key.create());
    // Each cell maps to the value that it created.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return cells.get(key) as T;
  };
};

/** Time that does not count towards `callMs`: waiting for a person or another call. */
export const uncounted = /* @__PURE__ */ cell('family', createOffTime);

/** Waits for a source without counting the time towards `callMs`. */
export const offTheClock = <T>(
  { local, scheduler }: { readonly local: Locals; readonly scheduler: SchedulerLike },
  source: Observable<T>,
): Observable<T> =>
  defer(() => source.pipe(finalize(local(uncounted).begin(() => scheduler.now()))));
