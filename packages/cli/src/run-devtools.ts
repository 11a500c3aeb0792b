import { createAgent } from 'millrace';
import { storeDevtools } from '@millrace/devtools';
import { EMPTY, firstValueFrom, ignoreElements, map, merge, tap } from 'rxjs';
import type { Outcome } from './ask.js';
import { chooseModel } from './choose-model.js';
import type { DevtoolsArguments } from './command-line/arguments.js';
import { assistantName, assistantTools } from './create-assistant.js';
import { chatAgentName } from './run-serve.js';
import { describePlace, missingNote } from './runs/store-place.js';
import { withRuns } from './runs/with-runs.js';
import type { Setting } from './setting.js';

/** Shows the runs of a store in a browser until a signal arrives. */
export const runDevtools = (setting: Setting<DevtoolsArguments>): Promise<Outcome> =>
  withRuns(setting, async ({ store, place }) => {
    const { given, environment, errorTheme } = setting;
    const { env, models, directory, stderr, interrupt$, terminate$ = EMPTY } = environment;
    const wanted = given.model || (env['MILLRACE_MODEL'] ?? '');
    const name = wanted === '' ? undefined : wanted;
    const [{ tools }, { model, about }] = await Promise.all([
      assistantTools({ directory }),
      chooseModel({ env, name, pace: 0 }, models),
    ]);
    const agents = [assistantName, chatAgentName].map((agentName) =>
      createAgent({ name: agentName, model, tools }),
    );
    const where = `${describePlace(place)}${missingNote(place)}`;
    const served$ = storeDevtools(store, {
      title: where,
      agents,
      ...(given.port === undefined ? {} : { port: given.port }),
    }).pipe(
      tap((address) => {
        stderr.write(`Devtools: ${address}\n`);
        const note = `Showing the runs in ${where}. Forks ask ${about}.`;
        stderr.write(`${errorTheme.colors.dim(note)}\n`);
      }),
      ignoreElements(),
    );
    return firstValueFrom(
      merge(
        served$,
        interrupt$.pipe(map((): Outcome => 'interrupted')),
        terminate$.pipe(map((): Outcome => 'terminated')),
      ),
    );
  });
