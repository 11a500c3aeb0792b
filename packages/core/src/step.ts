import { EMPTY, finalize, type Observable, of, type SchedulerLike, Subject, take } from 'rxjs';
import { made$ } from './flow/contained.js';
import type { OffTime } from './flow/deadline.js';
import type { ToolOutput } from './values/tool-output.js';
import type { ToolResultBlock, ToolUseBlock } from './values/message.js';

/** A question to the outside world and its answer: a model message, the decision to run a tool, a tool result, a load of memory. Layers around steps see everything that a call asks. */
export interface Step<T> {
  /** What is asked: `model`, `intent` (whether and how a tool is to run) and `tool` in the loop; other steps have kinds of their own. */
  readonly kind: 'model' | 'intent' | 'tool' | (string & {});
  /** The position in the call, unique and the same on every run of it: `3`, `3/0`, `3/0/intent`, `retrieve`. */
  readonly id: string;
  /** What is asked, for layers to look at: the request of a model, the tool call of an `intent` or a `tool`. */
  readonly input: unknown;
  /** Asks. Cold; emits one value and completes. Attempts count from 1. Errors of tools and vetoes are part of the value; an error is fatal. */
  // A verb, as `perform` is: `step.run(1)`.
  // eslint-disable-next-line rxjs-x/finnish
  readonly run: (attempt: number) => Observable<T>;
  /** Ends the step early: emits the value for what there is, and reports due events. Not asked once `run` has made its value. Without it, the step completes. */
  // eslint-disable-next-line rxjs-x/finnish
  readonly cut?: (why: Cut) => Observable<T>;
  /** The step may complete empty: then nothing happened, and nothing is recorded. */
  readonly optional?: true;
  /** How a value of this step is stored and checked. The kinds of the loop need none. */
  readonly form?: StepForm<T>;
}

/** Why a step ends early. */
export interface Cut {
  /** In a word, for layers further out: `interrupted`, `timeout`, `quota`. */
  readonly reason: string;
  /** What stands in the place of a tool's result, or of the reply if a message of the model is cut. Default: that it was interrupted, and the partial message. */
  readonly message?: string;
}

/** How the value of a step is stored, and read again. */
export interface StepForm<T> {
  /** Makes plain JSON of it. Default: it is plain JSON. */
  readonly write?: (value: T) => unknown;
  /** Whether a stored value is what such a step gives: files may be broken. */
  readonly isWritten: (written: unknown) => boolean;
  /** Makes the value of what was stored. Default: it is the value. */
  readonly read?: (written: unknown) => T;
  /** What of the value JSON could not hold, or what is different now, as a warning; `undefined` if there is nothing. */
  readonly warning?: (written: unknown) => string | undefined;
}

/** Performs a step: the only way to ask the outside world. Emits exactly one value, or none for an optional step. */
export type Perform = <T>(step: Step<T>) => Observable<T>;

/** What a `tool` step comes to, as far as layers look at it. */
export interface ToolStepResult {
  /** As it was run, with the edits of interceptors. */
  readonly toolUse: ToolUseBlock;
  readonly result: ToolResultBlock;
  /** Whether the tool was run at all. */
  readonly executed: boolean;
  /** It failed, or could not begin. A tool call that somebody denied has not failed. */
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

/** Waits for something that is no question to the world, as a step of kind `wait`: an interrupt ends the wait, and `undefined` is emitted. It is never recorded. */
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

/** A mutable value that a layer keeps for a call or a family of calls: its steps, models and phases share it. */
export interface Cell<T> {
  readonly of: 'call' | 'family';
  readonly create: () => T;
}

/** Makes a cell: one value per `call`, or one for a `family`: a call and all calls below it. */
export const cell = <T>(of: Cell<T>['of'], create: () => T): Cell<T> => ({ of, create });

export const replayedSteps = cell('call', () => new Set<string>());

export interface Recorded {
  /** What becomes of a tool call that was running when its process ended. Without an output, the tool runs again. */
  readonly uncertain: (
    toolUse: ToolUseBlock,
    isThere: boolean,
    isRemembered: boolean,
  ) => { readonly then: 'ask' | 'report' | 'rerun'; readonly output?: ToolOutput };
  /** Whether a step was recorded. */
  readonly isWritten: (id: string) => boolean;
  /** Whether the call has ended: nothing of it is run again. */
  readonly hasEnded: boolean;
  /** Whether a step may have been recorded. */
  readonly mayBeWritten: (id: string) => boolean;
  /** Everything until now was reported before. */
  readonly passed: () => void;
}

export const recorded = cell('call', (): { by?: Recorded } => ({}));

/** Returns the value of a cell. */
export type Locals = <T>(cell: Cell<T>) => T;

export const createLocals = (family: Map<Cell<unknown>, unknown>): Locals => {
  const own = new Map<Cell<unknown>, unknown>();
  return <T>(key: Cell<T>) => {
    const cells = key.of === 'call' ? own : family;
    if (!cells.has(key)) cells.set(key, key.create());
    // Only what the cell has created stands under it.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    return cells.get(key) as T;
  };
};

/** The time of a family of calls that does not count towards `callMs`: somebody is asked, or the call waits its turn. */
export const uncounted = /* @__PURE__ */ cell(
  'family',
  (): OffTime & { begin: (now: () => number) => () => void } => {
    const ended = new Subject<void>();
    let waits = 0;
    let since = 0;
    let past = 0;
    return {
      ms: (now) => past + (waits > 0 ? now - since : 0),
      end$: made$(() => (waits > 0 ? ended.pipe(take(1)) : EMPTY)),
      begin: (now) => {
        if (waits === 0) since = now();
        waits += 1;
        return () => {
          waits -= 1;
          if (waits > 0) return;
          past += now() - since;
          ended.next();
        };
      },
    };
  },
);

/** Waits for a source, off the clock of `callMs`. */
export const offTheClock = <T>(
  { local, scheduler }: { readonly local: Locals; readonly scheduler: SchedulerLike },
  source: Observable<T>,
): Observable<T> =>
  made$(() => source.pipe(finalize(local(uncounted).begin(() => scheduler.now()))));
