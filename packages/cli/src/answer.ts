import type { AgentEvent } from 'millrace';
import type { CallStore } from 'millrace/journal';
import {
  catchError,
  defaultIfEmpty,
  filter,
  firstValueFrom,
  map,
  NEVER,
  type Observable,
  of,
  type OperatorFunction,
  take,
} from 'rxjs';
import { ask$, type Begin, type Outcome } from './ask.js';
import type { AnswerArguments } from './command-line/arguments.js';
import type { Prepared } from './prepare.js';
import { describeError } from './presentation/describe-error.js';
import { presenterOf } from './presentation/presenter.js';
import { wrapFor } from './presentation/wrap.js';
import { commandFor, hint } from './runs/hints.js';
import type { Setting } from './setting.js';
import { isBrokenPipe } from './terminal/output.js';

/** How long the current step may take when a signal ends the program, in milliseconds. */
const drainMs = 5_000;

const ending = `\nShutting down: waiting up to ${drainMs / 1_000} s for the current step. Another signal aborts it.`;

/** Runs a call, prints it and its error, and prints how to resume it if it stopped. Resolves to how it ended. */
export const answer = async (
  callId: string,
  begin: Begin,
  { calls, chosen, runs }: Prepared,
  { given, environment, output, theme, errorTheme, debug }: Setting<AnswerArguments>,
  presenter: OperatorFunction<AgentEvent, string> = presenterOf(given, theme, chosen.unit),
): Promise<Outcome | 'failed'> => {
  const { interrupt$, terminate$ = NEVER, stderr, scheduler } = environment;
  const timing = scheduler === undefined ? {} : { scheduler };
  const note = (text: string): void => void stderr.write(`${errorTheme.colors.yellow(text)}\n`);
  const resumeHint = async (text: string): Promise<string> =>
    runs !== undefined && (await firstValueFrom(hasRecords$(runs.store, callId)))
      ? hint(`${text}Resume it:`, commandFor('resume', callId, given), errorTheme)
      : text.trimEnd();
  try {
    const outcome = await firstValueFrom(
      ask$(begin, presenter, {
        output,
        interrupt$,
        terminate$,
        drain$: () => {
          note(wrapFor(ending, errorTheme));
          return calls.drain$({ timeoutMs: drainMs, ...timing });
        },
      }),
    );
    if (outcome === 'stopped' || outcome === 'terminated')
      note(`${outcome === 'stopped' ? '\n' : ''}${await resumeHint('Stopped. ')}`);
    return outcome;
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    stderr.write(`${describeError(error, errorTheme, debug)}\n`);
    const how = await resumeHint('');
    if (how !== '') note(how);
    return 'failed';
  }
};

/** Emits whether the run has a recorded step and can be resumed; false if the store fails. */
const hasRecords$ = ({ driver }: Pick<CallStore, 'driver'>, callId: string): Observable<boolean> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    filter((records) => records.length > 0),
    map(() => true),
    take(1),
    defaultIfEmpty(false),
    catchError(() => of(false)),
  );
