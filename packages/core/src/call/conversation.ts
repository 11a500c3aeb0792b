import {
  catchError,
  concat,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  from,
  map,
  type Observable,
  of,
  take,
  throwError,
  toArray,
} from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { limitsOf, deadline } from '../deadline.js';
import { contained, made$ } from '../contained.js';
import { cutObservation, rejectedResult } from '../observation.js';
import {
  failAs,
  fatal,
  isMillraceError,
  messageOf,
  MillraceError,
  toMillraceError,
} from '../errors.js';
import { readHistory } from '../input.js';
import { type Layer, type LayerContext, trusted } from '../layer.js';
import { noMemory } from '../memory.js';
import {
  type Message,
  textOf,
  type ToolMessage,
  type ToolResultBlock,
  type ToolUseBlock,
} from '../message.js';
import { withPlainResults } from '../plain-details.js';
import { remember$ } from '../remember.js';
import type { Reply } from '../reply.js';
import { outcome, paired, progress, unpaired } from '../run.js';
import { hasFields, isArrayOf, isMessage, isNumeric, isOptional, isString } from '../shape.js';
import { cell, recorded, type StepForm } from '../step.js';
import { assertResumes, usesIn, withResults } from '../tools/suspend.js';
import type { Call } from './call.js';
import type { Hooks } from '../hooks.js';

export type Instructions = string | ((call: CallInfo) => string) | undefined;

/** Loads the history from memory, with results for suspended tools in their places, and stores what the loop has not stored yet. */
export const conversation = (instructions: Instructions): Layer =>
  trusted({
    name: 'conversation',
    priority: 60,
    single: true,
    call: (context) => (next) => (call) => {
      const goesOn = call.status === 'prepared' && context.interruption.current === undefined;
      return context
        .perform<Opening>({
          kind: 'open',
          id: 'open',
          input: call.input,
          run: () => opening$(call, instructions, context, goesOn),
          cut: () => opening$(call, instructions, context, false, true),
          form: openingForm(context.call, instructions),
        })
        .pipe(
          concatMap((opening) => {
            const { isCut = false, ...rest } = opening;
            const isOver = isCut || context.interruption.current !== undefined;
            const opened: Call = {
              ...call,
              ...rest,
              input: splitInput(call.input).input,
              status: call.status === 'prepared' && isOver ? 'interrupted' : call.status,
            };
            if (opened.memory === noMemory) return next(opened);
            if (context.local(failures).mode === 'keep') {
              context.local(outcome).keep$ = kept$(opened, context);
            }
            return next(opened).pipe(
              catchError((error: unknown) =>
                concat(
                  keptOnFailure$(context, error),
                  throwError(() => toMillraceError(error)),
                ),
              ),
              concatMap((reply) => saved$(opened, reply, context).pipe(defaultIfEmpty(reply))),
            );
          }),
        );
    },
  });

const saved$ = (
  { memory, history, input, late }: Call,
  { id, role, name, content, iterations }: Reply,
  { hooks, local }: LayerContext,
): Observable<never> => {
  const end = local(outcome);
  end.isRemembered = true;
  end.keep$ = undefined;
  const { run = local(progress).run } = end;
  // A layer may have made the reply by itself.
  const { messages, stored } = run ?? { messages: [...history, ...input], stored: history.length };
  const said = messages.findLast((message) => message.id === id);
  const isSaid =
    content.every(({ type }) => type === 'text') &&
    textOf({ content }) === textOf(said ?? { content: [] });
  const last: Message = {
    id: said === undefined ? id : `${id}/reply`,
    role,
    content,
    ...(name === undefined ? {} : { name }),
  };
  const lacking = [...messages.slice(stored), ...(isSaid ? [] : [last])];
  return remember$({ memory, hooks }, run ?? { iteration: iterations, late }, lacking);
};

export const failures = cell('call', (): { mode: OnFailure } => ({ mode: 'keep' }));

/** What memory keeps of a call that fails: the input and the tool calls, or nothing that was not stored before. */
export type OnFailure = 'keep' | 'discard';

const keepMs = 5_000;

/** Stores what a failed call leaves, once. An aborted call leaves nothing. Never errors. */
export const keptOnFailure$ = (
  { hooks, local, scheduler }: Pick<LayerContext, 'hooks' | 'local' | 'scheduler'>,
  error: unknown,
): Observable<never> =>
  defer(() => {
    const end = local(outcome);
    const { keep$ = EMPTY } = end;
    end.keep$ = undefined;
    if (isMillraceError(error) && error.code === 'aborted') return EMPTY;
    return keep$.pipe(
      deadline(keepMs, scheduler, 'The memory'),
      catchError((cause: unknown) => {
        const message = `What the failed call leaves was not stored. ${messageOf(cause)}`;
        hooks.report(hooks.iteration(), { type: 'warning', message });
        return EMPTY;
      }),
    );
  });

const kept$ = (
  { memory, history, input }: Call,
  { hooks, local }: LayerContext,
): Observable<never> =>
  defer(() => {
    const { run, acting } = local(progress);
    const { messages, stored } = run ?? {
      messages: [...history, ...input],
      stored: history.length,
    };
    // A journaled call may be resumed, and brings the results of its tools itself.
    const open = acting === undefined || local(recorded).by !== undefined ? [] : [acting];
    const begun = open.flatMap(({ asked, results }): readonly Message[] => [
      asked,
      { id: `${asked.id}/results`, role: 'tool', content: results },
    ]);
    const lacking = [...messages.slice(stored), ...begun];
    // Results that were brought can be brought again.
    const place = { iteration: hooks.iteration(), late: [] };
    return remember$({ memory, hooks }, place, paired(lacking), true);
  });

/** Results of suspended tools come first, in a message of their own. */
export const splitInput = (
  messages: Call['input'],
): { readonly results: ToolMessage | undefined; readonly input: Call['input'] } => {
  const [first, ...others] = messages;
  return first?.role === 'tool'
    ? { results: first, input: others }
    : { results: undefined, input: messages };
};

/** What a call begins with, and would begin with again if it were resumed. */
interface Opening extends Pick<Call, 'history' | 'late' | 'instructions' | 'createdAt'> {
  /** A layer has cut it: nothing is known of what was said, so the call must not run. */
  readonly isCut?: true;
}

/** The opening of a call as it is recorded, with the name of its agent: a call below another has no other record. */
const openingForm = (call: CallInfo, instructions: Instructions): StepForm<Opening> => ({
  write: ({ history, late, ...opening }) => ({
    ...opening,
    agent: call.agent.at(-1),
    history: withPlainResults(history),
    late: withPlainResults(late),
  }),
  isWritten: (written) =>
    hasFields(written, {
      history: isArrayOf(isMessage),
      late: isArrayOf(isMessage),
      instructions: isOptional(isString),
      createdAt: isNumeric,
      agent: isOptional(isString),
      isCut: isOptional((value) => value === true),
    }),
  read: (written) => {
    const { agent: name, ...opening } = asWritten(written);
    if (name !== undefined && name !== call.agent.at(-1)) throw ofAnother(call, name);
    return { ...opening, instructions: told(instructions, call) };
  },
  warning: (written) =>
    asWritten(written).instructions === told(instructions, call)
      ? undefined
      : 'The instructions have changed since the call began.',
});

const asWritten = (written: unknown): Opening & { readonly agent?: string } =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as ReturnType<typeof asWritten>;

const told = (instructions: Instructions, call: CallInfo): string | undefined =>
  typeof instructions === 'function' ? instructions(call) : instructions;

const ofAnother = ({ callId, agent }: CallInfo, name: string): MillraceError =>
  fatal(
    new MillraceError(
      'invalidState',
      `The call '${callId}' was one of the agent '${name}', and now '${agent.at(-1) ?? ''}' makes it. Give each call that a tool makes in parallel a 'callId' of its own.`,
    ),
  );

/** Opens a call: what memory holds, or what the caller says was said before, the results that were waited for, what the agent tells the model. */
const opening$ = (
  { memory, input: asked, options, said: before, late: past }: Call,
  instructions: Instructions,
  {
    call,
    scheduler,
    hooks,
    given,
    local,
  }: Pick<LayerContext, 'call' | 'scheduler' | 'hooks' | 'given' | 'local'>,
  /** Whether the call is to run: only then results are taken. */
  goesOn: boolean,
  /** Whether it is interrupted while the memory is read: nothing is known of what was said then. */
  isCut = false,
): Observable<Opening> => {
  const { results: brought, input } = splitInput(asked);
  const { maxObservation } = limitsOf(options.limits);
  const createdAt = scheduler.now();
  const results = goesOn ? brought : undefined;
  const { history } = given;
  const own$ = history === undefined ? undefined : made$(() => readHistory(history, call));
  const said$ = before === undefined ? own$ : of(before);
  const openingOf = (history: readonly Message[], came: readonly Message[]): Opening => ({
    history,
    late: came,
    instructions: told(instructions, call),
    createdAt,
    ...(isCut && { isCut }),
  });
  return (isCut ? of([]) : (said$ ?? loaded$(memory))).pipe(
    concatMap((said) => {
      const settled = usable(said, results === undefined ? input : asked, call);
      const history = repaired(settled, hooks, local(strictness).isStrict);
      if (goesOn) assertResumes(history, results);
      if (results === undefined) return of(openingOf(history, past));
      return brought$(hooks, history, results).pipe(
        map((edited) => cutResults(edited, maxObservation)),
        map((late) => openingOf(withResults([...history, late]), [...past, late])),
      );
    }),
  );
};

const loaded$ = (memory: Call['memory']): Observable<readonly Message[]> =>
  memory === noMemory
    ? of([])
    : defer(() => memory.load$()).pipe(
        contained(),
        failAs('memory', 'The memory could not be read'),
        take(1),
        defaultIfEmpty([]),
      );

const cutResults = (results: ToolMessage, most: number): ToolMessage => ({
  ...results,
  content: results.content.map((it) => ({ ...it, content: cutObservation(it.content, most) })),
});

/** Checked, because a memory is foreign code. */
const isList = (value: unknown): boolean => Array.isArray(value);

const usable = (
  loaded: readonly Message[],
  input: readonly Message[],
  { callId }: CallInfo,
): readonly Message[] => {
  if (!isList(loaded)) {
    throw new MillraceError('memory', 'The memory gave no list of messages.');
  }
  if (!loaded.every(isMessage)) {
    throw new MillraceError('memory', 'The memory gave something that is no message.');
  }
  const history = withResults(loaded);
  if (loaded.some(({ id }) => input.some((message) => message.id === id))) {
    throw new MillraceError(
      'conflict',
      `The session has had a call '${callId}' already. Give each call an id of its own, or none.`,
    );
  }
  return history;
};

/** Leads results that were brought for suspended tools through the interceptors of `postActing`, as it would have been done at once. */
const brought$ = (
  hooks: Hooks,
  history: readonly Message[],
  results: ToolMessage,
): Observable<ToolMessage> => {
  const uses = usesIn(history);
  return from(results.content).pipe(
    concatMap((result) => {
      const toolUse = uses.get(result.toolUseId);
      return toolUse === undefined ? [result] : after$(hooks, toolUse, result);
    }),
    toArray(),
    map((content) => ({ ...results, content })),
  );
};

const after$ = (
  hooks: Hooks,
  toolUse: ToolUseBlock,
  result: ToolResultBlock,
): Observable<ToolResultBlock> => {
  const after = { type: 'postActing', toolUse, result, ms: 0 } as const;
  return hooks.emit$(0, after, (event) => {
    if (event !== undefined) return of({ ...event.result, toolUseId: toolUse.id });
    const rejected = rejectedResult(toolUse.id);
    hooks.report(0, { ...after, result: rejected });
    return of(rejected);
  });
};

const repaired = (
  history: readonly Message[],
  { report }: Pick<Hooks, 'report'>,
  isStrict: boolean,
): readonly Message[] => {
  const fault = unpaired(history);
  if (fault === undefined) return history;
  if (isStrict) {
    throw new MillraceError(
      'memory',
      `The history holds ${fault}: it cannot be sent to a model. Without strictHistory() it is repaired.`,
    );
  }
  const message = `The history holds ${fault}. Each tool call without a result has got an error result.`;
  report(0, { type: 'warning', message });
  return paired(history);
};

const strictness = cell('call', () => ({ isStrict: false }));

/** Refuses a history in which a tool call has no result, with the error code `memory`. Without it such a history is repaired, and a `warning` says so. */
export const strictHistory = (): Layer =>
  trusted({
    name: 'strictHistory',
    priority: 59,
    call: (context) => (next) => (call) => {
      context.local(strictness).isStrict = true;
      return next(call);
    },
  });
