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
  tap,
} from 'rxjs';
import { splitOptions } from '../call-options.js';
import type { CallPlan } from '../call-plan.js';
import { lend, spentBelow, unlessHalted } from '../places.js';
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
import type { CallContext, CallStage } from '../pipeline/call-stage.js';
import type { CallState } from '../pipeline/call-state.js';
import { inPlaceOfLoop } from '../pipeline/loop-stages.js';
import { begun$ } from '../pipeline/run-loop.js';
import { contextMessage, notesMessage } from '../prompt/assemble.js';
import { numbered } from '../retrieval/numbered.js';
import { hasEnded, open, type OpenRun, spend } from '../run.js';
import { tokensIn, type Usage } from '../usage.js';
import { type Answer, answerOf, endAnswered$ } from './answer-of.js';

/**
 * Makes a stage that runs a step in the place of the loop: `asAgent` puts it into a pipeline in the place of `runLoop`. What the step emits
 * last is the answer.
 */
export const runStep = (step: Composable): CallStage => {
  if (!isStep(step)) {
    throw misuse(
      'asAgent() needs a step: an agent, a session, or an operator such as sequential().',
    );
  }
  const run = runnerOf(step);
  const ranStep: CallStage = (context) =>
    concatMap((state) => {
      const { hooks, interruption } = context;
      const { sources, plan } = state;
      if (sources.length > 0) hooks.report(0, { type: 'retrieved', passages: sources });
      warnOfIdle(plan, context);
      const { history, input, late, spent } = state;
      return begun$(open(history, input, { late, spent }), state, context).pipe(
        concatMap((begun) =>
          hasEnded(begun)
            ? of({ ...state, run: begun })
            : answer$(run, begun, state, context).pipe(
                concatMap(({ answer, usage }) => {
                  const spent = tokensIn(usage) === 0 ? begun : spend(begun, usage, 'steps');
                  return ended$(spent, answer, state, context);
                }),
              ),
        ),
        tap(() => interruption.close()),
      );
    });
  return inPlaceOfLoop(ranStep);
};

/** The options that are the loop's have nothing to act on. */
const warnOfIdle = ({ model, options }: CallPlan, { hooks }: CallContext): void => {
  const { timeouts: _, ...prepared } = splitOptions(options).prepared;
  const idle = [
    ...(model === undefined ? [] : ['model']),
    ...(options.addTools === undefined ? [] : ['addTools']),
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
  state: CallState,
  context: CallContext,
): Observable<{ readonly answer: Answer | undefined; readonly usage: Usage }> =>
  defer(() => {
    const { plan, input } = state;
    const { call, scope, interruption } = context;
    const history = historyOf(state, call.callId);
    const said = history.length === 0 ? {} : { history };
    const abort = createLazyAbort();
    const isOver = (): boolean => interruption.current !== undefined;
    const lending = { toolUseId: 'step', stepId: 'steps' };
    const parent = lend(scope, plan.toolkit, lending, begun, abort, isOver);
    const last$ = defer(() => run(inputOf(input), { parent, speaks: true, ...said })).pipe(
      contained(),
      failAs('unknown', `The steps of the agent '${plan.agentName}' failed`),
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
      unlessHalted(parent),
      map((answer) => ({ answer, usage: spentBelow(parent).usage })),
    );
  });

/** What a model would be shown before the input. */
const historyOf = (
  { recalled, history, sources, notes }: CallState,
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
  answer: Answer | undefined,
  state: CallState,
  context: CallContext,
): Observable<CallState> => {
  const { plan, sources } = state;
  if (context.interruption.current !== undefined) {
    return of({ ...state, run: endInterrupted(begun, context, answer?.message) });
  }
  if (answer === undefined) {
    throw new MillraceError(
      'emptyAnswer',
      `The steps of the agent '${plan.agentName}' have answered nothing.`,
    );
  }
  return endAnswered$(begun, answer, plan.output).pipe(
    map((run) => ({ ...state, run, sources: [...(answer.reply?.sources ?? []), ...sources] })),
  );
};
