import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  EMPTY,
  map,
  type Observable,
  of,
  takeLast,
} from 'rxjs';
import { begin, concluded } from '../call/answer.js';
import type { Call } from '../call/call.js';
import type { CallContext } from '../call-context.js';
import { lend, spentBelow, refuseHalted } from '../places.js';
import { isStep, runnerOf, type Composable } from '../compose/step.js';
import type { StepRun } from '../compose/step-runs.js';
import { contained } from '../contained.js';
import { endInterrupted } from '../end-interrupted.js';
import { MillraceError, misuse } from '../errors.js';
import { failAs } from '../fail-as.js';
import type { Input } from '../input.js';
import { waited$ } from '../step.js';
import { abortsUnlessComplete, createLazyAbort } from '../lazy-abort.js';
import { type Message, textOf } from '../message.js';
import { contextMessage, notesMessage } from '../prompt/assemble.js';
import { numbered } from '../retrieval/numbered.js';
import { type EndedRun, hasEnded, type OpenRun, spend } from '../run.js';
import type { Answer } from '../layer.js';
import { tokensIn, type Usage } from '../usage.js';
import { answerOf, endAnswered$, type StepAnswer } from './answer-of.js';

/** Makes the innermost answer of an agent that is made of a step: what the step emits last is the answer. */
export const runStep = (step: Composable): ((context: CallContext) => Answer) => {
  if (!isStep(step)) {
    throw misuse(
      'asAgent() needs a step: an agent, a session, or an operator such as sequential().',
    );
  }
  const run = runnerOf(step);
  return (context) => (call) =>
    defer(() => {
      const begun = begin(call, context);
      warnOfIdle(call, context);
      if (hasEnded(begun)) return of(concluded(begun, call, context));
      return answer$(run, begun, call, context).pipe(
        concatMap(({ answer, usage }) => {
          const spent = tokensIn(usage) === 0 ? begun : spend(begun, usage, 'steps');
          return ended$(spent, answer, call, context).pipe(
            map((ended) => {
              const sources = [...(answer?.reply?.sources ?? []), ...call.sources];
              return concluded(ended, { ...call, sources }, context);
            }),
          );
        }),
      );
    });
};

/** The options that are the loop's have nothing to act on. */
const warnOfIdle = ({ model, options, pinned }: Call, { hooks }: CallContext): void => {
  const { timeouts: _, ...prepared } = options;
  const idle = [
    ...(model === undefined ? [] : ['model']),
    ...(pinned.length === 0 ? [] : ['addTools']),
    ...Object.keys(prepared),
  ];
  if (idle.length === 0) return;
  const message = `An agent made of steps has no loop of its own, so it passes over ${idle.join(', ')}. Give that to the agents in its steps.`;
  hooks.report(0, { type: 'warning', message });
};

/** What the program emits last, where it emits anything, and what it has cost. */
const answer$ = (
  run: StepRun<Input>,
  begun: OpenRun,
  asked: Call,
  context: CallContext,
): Observable<{ readonly answer: StepAnswer | undefined; readonly usage: Usage }> =>
  defer(() => {
    const { call, interruption } = context;
    const history = historyOf(asked, call.callId);
    const said = history.length === 0 ? {} : { history };
    const abort = createLazyAbort();
    const isOver = (): boolean => interruption.current !== undefined;
    const lending = { toolUseId: 'step', stepId: 'steps' };
    const parent = lend(context, asked.toolkit, lending, begun, abort, isOver);
    const last$ = defer(() => run(inputOf(asked.input), { parent, speaks: true, ...said })).pipe(
      contained(),
      failAs('unknown', `The steps of the agent '${nameOf(context)}' failed`),
      takeLast(1),
      map((value) => answerOf(value, call)),
      defaultIfEmpty(undefined),
      abortsUnlessComplete(abort),
    );
    return waited$(context, 'steps', last$).pipe(
      // A step that cannot go on without what an interrupt has cut is interrupted as well.
      catchError((error: unknown) => {
        if (isOver()) return EMPTY;
        throw error;
      }),
      defaultIfEmpty(undefined),
      map((answer) => {
        refuseHalted(parent);
        return { answer, usage: spentBelow(parent).usage };
      }),
    );
  });

/** What a model would be shown before the input. */
const historyOf = (
  { recalled, history, sources, notes }: Call,
  callId: string,
): readonly Message[] => [
  ...recalled,
  ...history,
  ...(sources.length > 0 ? [contextMessage(`${callId}/context`, numbered(sources))] : []),
  ...notesMessage(`${callId}/notes`, notes),
];

/** A plain text is handed on as one, so that a function which looks at it finds what was asked. */
const inputOf = (input: readonly Message[]): Input => {
  const [first, ...others] = input;
  if (first === undefined || others.length > 0) return input;
  const isText = first.role === 'user' && first.content.every(({ type }) => type === 'text');
  return isText && first.name === undefined ? textOf(first) : first;
};

const ended$ = (
  begun: OpenRun,
  answer: StepAnswer | undefined,
  { output }: Call,
  context: CallContext,
): Observable<EndedRun> => {
  if (context.interruption.current !== undefined) {
    return of(endInterrupted(begun, context, answer?.message));
  }
  if (answer === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The steps of the agent '${nameOf(context)}' have answered nothing.`,
    );
  }
  return endAnswered$(begun, answer, output);
};

const nameOf = ({ call }: Pick<CallContext, 'call'>): string => call.agent.at(-1) ?? '';
