import { attach$, type CallSummary, replay$ } from 'millrace/journal';
import type { AgentEvent } from 'millrace';
import {
  defaultIfEmpty,
  firstValueFrom,
  type MonoTypeOperatorFunction,
  NEVER,
  ReplaySubject,
  type Subject,
  tap,
} from 'rxjs';
import type { Outcome } from '../ask.js';
import type { ReplayArguments } from '../command-line/arguments.js';
import { isHumanOutput, presenterOf } from '../presentation/presenter.js';
import type { Theme } from '../presentation/theme.js';
import type { Setting } from '../setting.js';
import { describeFailure, failureOf } from './failure.js';
import { findRun$ } from './find-run.js';
import { commandFor, hint } from './hints.js';
import { keptSteps$ } from './kept-steps.js';
import { questionLine } from '../presentation/introduction.js';
import { writeOutput$ } from './write-output.js';
import { runModel } from './run-model.js';
import { withRuns } from './with-runs.js';

/** The longest pause between two events, in milliseconds: a run may have paused for days before it was resumed. */
const maxGapMs = 10_000;

/** How long to wait for the first record of a run, in milliseconds. */
const waitMs = 10_000;

/** Plays a run back with its own pauses, or follows it. Resolves to how that ended. */
export const replayRun = (setting: Setting<ReplayArguments>): Promise<Outcome> =>
  withRuns(setting, async ({ store, place }) => {
    const { given, environment, output, theme, errorTheme } = setting;
    const { interrupt$, terminate$ = NEVER, stderr, scheduler } = environment;
    const run = await firstValueFrom(findRun$({ store, place }, given.run));
    const { unit = 'tokens' } = runModel(run) ?? {};
    const timing = scheduler === undefined ? {} : { scheduler };
    if (isHumanOutput(given)) {
      output.stream.write(questionLine(aboutOf(run), theme));
      output.stream.write(await firstValueFrom(keptSteps$(store, run, theme)));
    }
    const event$ = given.follow
      ? attach$(store, run.callId, { waitMs, ...timing })
      : replay$(store, run.callId, { speed: given.speed, maxGapMs, ...timing });
    const last$ = new ReplaySubject<AgentEvent>(1);
    const outcome = await firstValueFrom(
      writeOutput$(event$.pipe(keptIn(last$), presenterOf(given, theme, unit)), output, {
        interrupt$,
        terminate$,
      }),
    );
    const last =
      outcome === 'answered'
        ? await firstValueFrom(last$.pipe(defaultIfEmpty(undefined)))
        : undefined;
    const failure = failureOf(last);
    // With `--json`, its event is a line.
    if (failure !== undefined && !given.json) {
      stderr.write(describeFailure(failure, run, given, errorTheme));
    }
    const more = noteOn(run, given, errorTheme);
    if (outcome === 'answered' && !given.follow && more !== '') {
      stderr.write(`${errorTheme.colors.yellow(more)}\n`);
    }
    return outcome;
  });

/** Keeps the values and the end. An error of a subject without subscribers would be printed a second time. */
const keptIn = <T>(last$: Subject<T>): MonoTypeOperatorFunction<T> =>
  tap({ next: (value) => last$.next(value), complete: () => last$.complete() });

const aboutOf = (run: CallSummary): string =>
  run.status === 'unreadable' ? `Cannot be read: ${run.why}` : run.question;

/** A hint if the replay does not show the end of the run. */
const noteOn = ({ status, callId }: CallSummary, given: ReplayArguments, theme: Theme): string => {
  if (status === 'running') {
    const follow = `${commandFor('replay', callId, given)} --follow`;
    return hint('It is still running. Follow it:', follow, theme);
  }
  return status === 'unfinished'
    ? hint('It is unfinished. Resume it:', commandFor('resume', callId, given), theme)
    : '';
};
