import {
  createToolParts,
  type Tool,
  type ToolCallBlock,
  toolCallsOf,
  type ToolEmission,
} from 'millrace';
import {
  type Context,
  isDecidedOn,
  type OpenRun,
  type Run,
  toolCallIds,
  toolContext,
  unanswered,
} from 'millrace/phases';
import type { LoopCall } from 'millrace/call';
import { exactJson, isRecord, toolInput } from 'millrace/values';
import equal from 'fast-deep-equal';
import {
  catchError,
  concatMap,
  defer,
  EMPTY,
  finalize,
  ignoreElements,
  mergeAll,
  type Observable,
  ReplaySubject,
  share,
  Subject,
  take,
  takeUntil,
  tap,
} from 'rxjs';

/** A run that started early. */
interface Ahead {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  readonly context: Context;
  readonly startedAt: number;
  readonly emission$: Observable<ToolEmission>;
  readonly cancelled$: Subject<void>;
  /** The validated input. */
  valid: { readonly value: unknown } | undefined;
  /** Whether the message is complete and has this tool call. */
  isKept: boolean;
}

/** The turn whose message streams. */
interface Turn {
  readonly context: Context;
  readonly call: LoopCall;
  readonly run: OpenRun;
  readonly tools: ReadonlyMap<string, Tool>;
  /** The position of the message, the same for each response of a paused one. */
  stepId: string | undefined;
}

/** The early runs of a call. */
export interface Speculation {
  /** Keeps the runs subscribed: without a subscriber, no tool starts. Never emits, completes or errors. */
  readonly running$: Observable<never>;
  /** Begins a turn. */
  begin(run: Run, context: Context, call: LoopCall): void;
  /** Keeps the runs that the message of the turn has asked for, and cancels the others. */
  settle(run: Run): void;
  /** Cancels all runs that no tool call has taken over. */
  cancel(): void;
  /** Whether a request is for the message of the turn, and tools may start early. Cancels the runs of another attempt. */
  opens(stepId: string): boolean;
  /** Whether a tool of the turn may start early. */
  mayStart(name: string): boolean;
  /** Starts a tool, unless too many run. */
  start(
    part: { readonly id: string; readonly name: string; readonly index: number },
    input: unknown,
  ): void;
  /** Collects the tool calls of a message of the turn. */
  parts(): ReturnType<typeof createToolParts>;
  /** A tool whose next run may have started already. */
  taking(tool: Tool): Tool;
}

export const createSpeculation = (max: number, isChosen: (tool: Tool) => boolean): Speculation => {
  const starts$ = new Subject<Observable<never>>();
  const aheads = createAheads();
  const taking = new WeakMap<Tool, Tool>();
  let turn: Turn | undefined;
  let isOpen = false;
  return {
    running$: defer(() => {
      isOpen = true;
      return starts$.pipe(mergeAll());
    }),
    begin: (run, context, call) => {
      aheads.cancel();
      turn = undefined;
      if (run.status !== 'open' || !isOpen || isDecidedOn(context)) return;
      const tools = call.toolkit.current.tools.filter((tool) => isChosen(tool) && isFree(tool));
      const byName = new Map(tools.map((tool) => [tool.name, tool]));
      turn = { context, call, run, tools: byName, stepId: undefined };
    },
    settle: (run) => {
      const message = run.status === 'open' && !run.stopping ? unanswered(run) : undefined;
      aheads.keepOnly(message === undefined ? [] : toolCallsOf(message));
    },
    cancel: () => aheads.cancel(),
    opens: (stepId) => {
      if (turn === undefined || turn.tools.size === 0) return false;
      const { context, run } = turn;
      const own = `${context.info.callId}/${run.iteration + 1}`;
      if (stepId !== own && !stepId.startsWith(`${own}~`)) return false;
      // A layer asks again: the former message is discarded.
      if (turn.stepId !== undefined && turn.stepId !== stepId) aheads.cancel();
      turn.stepId = stepId;
      return true;
    },
    mayStart: (name) => turn?.tools.has(name) === true,
    start: (part, input) => {
      const tool = turn?.tools.get(part.name);
      if (turn === undefined || tool === undefined || !isRecord(input)) return;
      const { context, call, run } = turn;
      const isLimited = run.executed + aheads.count() >= call.limits.maxToolCalls;
      if (aheads.count() >= max || isLimited || context.interruption.current !== undefined) return;
      if (aheads.has(part.id)) return;
      const ahead = started(turn, tool, part, input);
      aheads.add(ahead);
      starts$.next(running$(ahead));
    },
    parts: () =>
      createToolParts(
        (turn?.run.iteration ?? -1) + 1,
        (id) => turn?.context.local(toolCallIds).has(id) === true,
      ),
    taking: (tool) => {
      const own = taking.get(tool) ?? takingOver(tool, aheads);
      taking.set(tool, own);
      return own;
    },
  };
};

type Part = Parameters<Speculation['start']>[0];

/** A run of a tool that starts when it is subscribed to, and emits the same to all who subscribe later. */
const started = (
  { context, call, run }: Turn,
  tool: Tool,
  { id, name, index }: Part,
  input: unknown,
): Ahead => {
  const iteration = run.iteration + 1;
  const abort = new AbortController();
  const lending = { toolCallId: id, stepId: `${iteration}/${index}` };
  const lent = toolContext(context, call, lending, { ...run, iteration }, abort);
  let isComplete = false;
  const emission$ = defer(() => tool.validation$(input, call.values)).pipe(
    take(1),
    concatMap((validation) => {
      if (!validation.valid) return EMPTY;
      ahead.valid = { value: validation.value };
      report(ahead, 'started', 0);
      return tool.run$(validation.value, lent);
    }),
    tap({
      complete: () => {
        isComplete = true;
      },
    }),
    finalize(() => {
      if (!isComplete) abort.abort();
    }),
    share({
      connector: () => new ReplaySubject<ToolEmission>(Infinity),
      resetOnComplete: false,
      resetOnError: false,
    }),
  );
  const ahead: Ahead = {
    ...{ id, name, input, context, emission$ },
    startedAt: context.scheduler.now(),
    cancelled$: new Subject<void>(),
    valid: undefined,
    isKept: false,
  };
  return ahead;
};

/** Keeps a run subscribed until it is cancelled. */
const running$ = ({ emission$, cancelled$ }: Ahead): Observable<never> =>
  emission$.pipe(
    takeUntil(cancelled$),
    ignoreElements(),
    // Its tool call reports it.
    catchError(() => EMPTY),
  );

const report = (
  { id: toolCallId, name, context: { hooks, scheduler }, startedAt }: Ahead,
  status: 'started' | 'used' | 'cancelled',
  ms = scheduler.now() - startedAt,
): void => {
  hooks.report(hooks.iteration(), { type: 'speculation', toolCallId, name, status, ms });
};

/** The runs that started early, and that no tool call has taken over. */
interface Aheads {
  count(): number;
  has(id: string): boolean;
  add(ahead: Ahead): void;
  /** Cancels some runs. Default: all. */
  cancel(isOut?: (ahead: Ahead) => boolean): void;
  /** Keeps the runs that tool calls have asked for, and cancels the others. */
  keepOnly(toolCalls: readonly ToolCallBlock[]): void;
  /** The run that a tool call takes over, if it started with the same input. */
  take(tool: Tool, value: unknown, toolCallId: string): Ahead | undefined;
}

const createAheads = (): Aheads => {
  const aheads = new Set<Ahead>();
  const cancel: Aheads['cancel'] = (isOut = () => true) => {
    for (const ahead of [...aheads].filter(isOut)) {
      aheads.delete(ahead);
      ahead.cancelled$.next();
      if (ahead.valid !== undefined) report(ahead, 'cancelled');
    }
  };
  return {
    cancel,
    count: () => aheads.size,
    has: (id) => [...aheads].some((ahead) => ahead.id === id),
    add: (ahead) => void aheads.add(ahead),
    keepOnly: (toolCalls) => {
      for (const ahead of aheads) {
        const { id, name, input } = ahead;
        ahead.isKept = toolCalls.some(
          (it) =>
            it.id === id && it.name === name && it.refusal === undefined && equal(it.input, input),
        );
      }
      cancel(({ isKept }) => !isKept);
    },
    take: (tool, value, toolCallId) => {
      const ahead = [...aheads].find(({ id, isKept }) => isKept && id === toolCallId);
      if (ahead === undefined) return undefined;
      const { valid, name } = ahead;
      if (name !== tool.name || valid === undefined || !equal(valid.value, value)) {
        cancel((it) => it === ahead);
        return undefined;
      }
      aheads.delete(ahead);
      report(ahead, 'used');
      return ahead;
    },
  };
};

/** A tool that takes over the run of its tool call. */
const takingOver = (tool: Tool, aheads: Aheads): Tool => ({
  ...tool,
  run$: (value, lent) => {
    if (aheads.count() === 0) return tool.run$(value, lent);
    return defer(() => {
      const ahead = aheads.take(tool, value, lent.toolCallId);
      if (ahead === undefined) return tool.run$(value, lent);
      return ahead.emission$.pipe(finalize(() => ahead.cancelled$.next()));
    });
  },
});

/** Whether a tool needs nothing but its input. */
const isFree = ({ deciders = [], accepts = [], exclusive }: Tool): boolean =>
  deciders.length === 0 && accepts.length === 0 && exclusive !== true;

/** Reads the arguments of a tool call as they stream: returns their value once the object has closed. */
export const closing = (): ((json: string) => unknown) => {
  const read: string[] = [];
  let depth = 0;
  let isInText = false;
  let isEscaped = false;
  let isClosed = false;
  return (json) => {
    read.push(json);
    if (isClosed) return undefined;
    for (const sign of json) {
      if (isEscaped) isEscaped = false;
      else if (isInText) {
        if (sign === '"') isInText = false;
        else if (sign === '\\') isEscaped = true;
      } else if (sign === '"') isInText = true;
      else if (sign === '{' || sign === '[') depth += 1;
      else if (sign === '}' || sign === ']') {
        depth -= 1;
        if (depth === 0) isClosed = true;
      }
    }
    const whole = isClosed ? toolInput(exactJson(read.join(''))) : undefined;
    return whole !== undefined && 'input' in whole ? whole.input : undefined;
  };
};
