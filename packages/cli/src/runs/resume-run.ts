import { isMillraceError, MillraceError } from 'millrace';
import { type CallSummary, journal } from 'millrace/journal';
import { catchError, firstValueFrom } from 'rxjs';
import { answer } from '../answer.js';
import type { Begin, Outcome } from '../ask.js';
import type { AnswerArguments, ResumeArguments } from '../command-line/arguments.js';
import { prepare } from '../prepare.js';
import { isHumanOutput } from '../presentation/presenter.js';
import type { Setting } from '../setting.js';
import { inSession } from '../callable-for.js';
import { assertOwn, findRun$ } from './find-run.js';
import { commandFor } from './hints.js';
import { keptSteps$ } from './kept-steps.js';
import type { RunStore } from './open-run-store.js';
import { questionLine } from '../presentation/introduction.js';
import { runModel } from './run-model.js';
import { tidy } from './tidy.js';
import { withRuns } from './with-runs.js';

/** Resumes a run, and resolves to how it ended. */
export const resumeRun = (setting: Setting<ResumeArguments>): Promise<Outcome | 'failed'> =>
  withRuns(setting, async (runs) => {
    const { given } = setting;
    const run = await firstValueFrom(findRun$(runs, given.run));
    if (run.status === 'ended') throw nothingToDo(run.callId, given);
    return continueRun(run, runs, setting);
  });

/** Continues a run of the command's own agent. */
export const continueRun = async (
  run: CallSummary,
  runs: RunStore,
  setting: Setting<AnswerArguments>,
): Promise<Outcome | 'failed'> => {
  const { given, output, theme } = setting;
  assertOwn(run);
  const { callId, sessionId } = run;
  const prepared = await prepare(setting, { runs, previousModel: runModel(run) });
  if (isHumanOutput(given)) {
    output.stream.write(questionLine(run.question, theme));
    output.stream.write(await firstValueFrom(keptSteps$(runs.store, run, theme)));
  }
  const { maxIterations } = given;
  const limit = maxIterations === undefined ? {} : { limits: { maxIterations } };
  const { agent, durable = journal(runs.store) } = prepared;
  const whole = sessionId === undefined ? agent : inSession(agent, runs, sessionId);
  const begin: Begin = (options) =>
    durable.resumeStream$(whole, callId, { ...options, ...limit }).pipe(
      catchError((error: unknown) => {
        throw isMillraceError(error) && error.code === 'conflict'
          ? runsElsewhere(callId, given, error)
          : error;
      }),
    );
  const outcome = await answer(callId, begin, prepared, setting);
  await tidy(runs, setting, outcome);
  return outcome;
};

const nothingToDo = (callId: string, given: AnswerArguments): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `This run has ended, so it cannot be resumed. To see it: ${commandFor('replay', callId, given)}. To repeat a part of it: ${commandFor('fork', callId, given)} --at <step>`,
  );

const runsElsewhere = (callId: string, given: AnswerArguments, cause: unknown): MillraceError =>
  new MillraceError(
    'conflict',
    `Another process is running this run or its conversation. Follow it: ${commandFor('replay', callId, given)} --follow`,
    { cause },
  );
