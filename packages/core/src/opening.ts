import { concatMap, defaultIfEmpty, defer, map, type Observable, of, take } from 'rxjs';
import type { CallInfo } from './call-info.js';
import { limitsOf } from './call-options.js';
import { contained } from './contained.js';
import { cutObservation } from './cut-observation.js';
import { MillraceError } from './errors.js';
import { failAs } from './fail-as.js';
import { readHistory } from './input.js';
import { isMessage } from './is-message.js';
import { halting } from './journal/halt.js';
import type { StepForm } from './step.js';
import { noMemory } from './memory.js';
import type { Message, ToolMessage } from './message.js';
import type { CallContext } from './pipeline/call-stage.js';
import type { CallState } from './pipeline/call-state.js';
import { unpaired } from './run.js';
import { withPlainResults } from './plain-details.js';
import { hasFields, isArrayOf, isNumeric, isOptional, isString } from './shape.js';
import { brought$ } from './tools/brought.js';
import { assertResumes, suspensionsIn, withResults } from './tools/suspend.js';

/** What a call begins with, and would begin with again if it were resumed. */
export interface Opening {
  /** With the results that were brought in their places. */
  readonly history: readonly Message[];
  /** These results, as memory is to have them. */
  readonly late: readonly Message[];
  readonly instructions: string | undefined;
  readonly createdAt: number;
}

/** The opening of a call in its journal, with the name of its agent: a call below another has no other record. */
export const openingForm = ({ callId, agent }: CallInfo): StepForm<Opening> => ({
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
    }),
  read: (written) => {
    const { agent: name, ...opening } = asWritten(written);
    if (name !== undefined && name !== agent.at(-1)) throw ofAnother(callId, name, agent);
    return opening;
  },
});

/** Checked before it is read. */
const asWritten = (written: unknown): Opening & { readonly agent?: string } =>
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
  written as ReturnType<typeof asWritten>;

const ofAnother = (callId: string, name: string, agent: CallInfo['agent']): MillraceError =>
  halting(
    new MillraceError(
      'invalidState',
      `The call '${callId}' was one of the agent '${name}', and now '${agent.at(-1) ?? ''}' makes it: which of them comes first must not depend on which is quicker. Give each call that a tool makes side by side a 'callId' of its own.`,
    ),
  );

/** Opens a call: what memory holds, or what the caller says was said before, the results that were waited for, what the agent tells the model. */
export const opening$ = (
  {
    plan,
    memory,
    input,
    results: brought,
  }: Pick<CallState, 'plan' | 'memory' | 'input' | 'results'>,
  { call, scheduler, hooks }: Pick<CallContext, 'call' | 'scheduler' | 'hooks'>,
  /** Whether the call is to run: only then results are taken. */
  goesOn: boolean,
  /** Whether it is interrupted while the memory is read: nothing is known of what was said then. */
  isCut = false,
): Observable<Opening> => {
  const { instructions, options } = plan;
  const { maxObservation } = limitsOf(options);
  const createdAt = scheduler.now();
  const carried = plan.begun?.history;
  // What the forked call was brought is in what the fork carries on.
  const isBrought = carried !== undefined && suspensionsIn(carried).length === 0;
  const results = goesOn && !isBrought ? brought : undefined;
  const past = carried === undefined || memory === noMemory ? [] : carried;
  const { history: given } = options;
  const loaded$ =
    given === undefined
      ? defer(() => memory.load$()).pipe(
          contained(),
          failAs('memory', 'The memory could not be read'),
        )
      : defer(() => of(readHistory(given, call)));
  return (isCut ? of([]) : carried === undefined ? loaded$ : of(carried)).pipe(
    take(1),
    defaultIfEmpty([]),
    concatMap((loaded) => {
      const asked = results === undefined ? input : [results, ...input];
      const history = usable(loaded, asked, call);
      if (goesOn) assertResumes(history, results);
      if (results === undefined) return of({ history, late: past });
      return brought$(hooks, history, results).pipe(
        map((edited) => cutResults(edited, maxObservation)),
        map((late) => ({ history: withResults([...history, late]), late: [...past, late] })),
      );
    }),
    map(({ history, late }) => ({
      history,
      late,
      instructions: typeof instructions === 'function' ? instructions(call) : instructions,
      createdAt,
    })),
  );
};

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
