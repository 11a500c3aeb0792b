import {
  concatMap,
  defaultIfEmpty,
  defer,
  from,
  identity,
  map,
  type Observable,
  of,
  take,
  toArray,
} from 'rxjs';
import type { CallInfo } from '../call-info.js';
import { limitsOf } from '../call-options.js';
import { contained } from '../contained.js';
import { cutObservation, rejectedResult } from '../observation.js';
import { fatal, MillraceError } from '../errors.js';
import { failAs } from '../fail-as.js';
import { readHistory } from '../input.js';
import { isMessage } from '../shape.js';
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
import { made$ } from '../contained.js';
import { remember$ } from '../remember.js';
import type { Reply } from '../reply.js';
import { outcome, unpaired } from '../run.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from '../shape.js';
import type { StepForm } from '../step.js';
import { assertResumes, usesIn, withResults } from '../tools/suspend.js';
import { progress } from '../loop.js';
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
          form: openingForm(context.call),
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
            return next(opened).pipe(
              opened.memory === noMemory
                ? identity
                : concatMap((reply) => saved$(opened, reply, context).pipe(defaultIfEmpty(reply))),
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
const openingForm = ({ callId, agent }: CallInfo): StepForm<Opening> => ({
  write: ({ history, late, ...opening }) => ({
    ...opening,
    agent: agent.at(-1),
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
    if (name !== undefined && name !== agent.at(-1)) throw ofAnother(callId, name, agent);
    return opening;
  },
});

const asWritten = (written: unknown): Opening & { readonly agent?: string } =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as ReturnType<typeof asWritten>;

const ofAnother = (callId: string, name: string, agent: CallInfo['agent']): MillraceError =>
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
  { call, scheduler, hooks, given }: Pick<LayerContext, 'call' | 'scheduler' | 'hooks' | 'given'>,
  /** Whether the call is to run: only then results are taken. */
  goesOn: boolean,
  /** Whether it is interrupted while the memory is read: nothing is known of what was said then. */
  isCut = false,
): Observable<Opening> => {
  const { results: brought, input } = splitInput(asked);
  const { maxObservation } = limitsOf(options);
  const createdAt = scheduler.now();
  const results = goesOn ? brought : undefined;
  const { history } = given;
  const own$ = history === undefined ? undefined : made$(() => readHistory(history, call));
  const said$ = before === undefined ? own$ : of(before);
  const openingOf = (history: readonly Message[], came: readonly Message[]): Opening => ({
    history,
    late: came,
    instructions: typeof instructions === 'function' ? instructions(call) : instructions,
    createdAt,
    ...(isCut && { isCut }),
  });
  return (isCut ? of([]) : (said$ ?? loaded$(memory))).pipe(
    concatMap((said) => {
      const history = usable(said, results === undefined ? input : asked, call);
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
  const fault = unpaired(history);
  if (fault !== undefined) {
    throw new MillraceError('memory', `The memory holds ${fault}: it cannot be sent to a model.`);
  }
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
