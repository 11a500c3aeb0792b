import { firstValueFrom, NEVER } from 'rxjs';
import { ask$, type Begin, type Outcome } from './ask.js';
import type { AnswerArguments } from './command-line/arguments.js';
import type { Prepared } from './prepare.js';
import { describeError } from './presentation/describe-error.js';
import { presenterOf } from './presentation/presenter.js';
import { commandFor } from './runs/hints.js';
import { isWritten$ } from './runs/is-written.js';
import type { Setting } from './setting.js';
import { isBrokenPipe } from './terminal/output.js';

/** How long a step that is under way may take when a signal ends the program, in milliseconds. */
const drainMs = 5_000;

const ending = `\nEnding: the step under way may take ${drainMs / 1_000} s more. Another signal ends it at once.`;

/** Makes a call, prints it, shows its error, and says how to go on with what was broken off. Resolves to how it ended. */
export const answer = async (
  callId: string,
  begin: Begin,
  { calls, chosen, runs }: Prepared,
  { given, environment, output, theme, errorTheme, debug }: Setting<AnswerArguments>,
): Promise<Outcome | 'failed'> => {
  const { interrupt$, terminate$ = NEVER, stderr, scheduler } = environment;
  const timing = scheduler === undefined ? {} : { scheduler };
  const note = (text: string): void => void stderr.write(`${errorTheme.colors.yellow(text)}\n`);
  const goOn = async (): Promise<string> =>
    runs !== undefined && (await firstValueFrom(isWritten$(runs.store, callId)))
      ? `Go on with it: ${commandFor('resume', callId, given)}`
      : '';
  try {
    const outcome = await firstValueFrom(
      ask$(begin, presenterOf(given, theme, chosen.unit), {
        output,
        interrupt$,
        terminate$,
        drain$: () => {
          note(ending);
          return calls.drain$({ timeoutMs: drainMs, ...timing });
        },
      }),
    );
    if (outcome === 'stopped' || outcome === 'terminated')
      note(`${outcome === 'stopped' ? '\n' : ''}Stopped. ${await goOn()}`.trimEnd());
    return outcome;
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    stderr.write(`${describeError(error, errorTheme, debug)}\n`);
    const how = await goOn();
    if (how !== '') note(how);
    return 'failed';
  }
};
