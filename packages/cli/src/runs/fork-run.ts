import { MillraceError } from 'millrace';
import { isRecord, parsedJson } from 'millrace/values';
import { type CallStore, type CallSummary, fork$, steps$ } from 'millrace/journal';
import {
  defaultIfEmpty,
  filter,
  firstValueFrom,
  lastValueFrom,
  map,
  mergeMap,
  type Observable,
  take,
  toArray,
} from 'rxjs';
import type { Outcome } from '../ask.js';
import type { ForkArguments } from '../command-line/arguments.js';
import { isHumanOutput } from '../presentation/presenter.js';
import type { Setting } from '../setting.js';
import { withQuestion, withTexts } from './edited-step.js';
import { assertOwn, findRun$ } from './find-run.js';
import type { RunStore } from './open-run-store.js';
import { continueRun } from './resume-run.js';
import { newCallId, shortId } from './run-id.js';
import { withRuns } from './with-runs.js';

/** Forks a run, prints the id of the new run, and continues it. Resolves to how it ended. */
export const forkRun = (setting: Setting<ForkArguments>): Promise<Outcome | 'failed'> =>
  withRuns(setting, async (runs) => {
    const { given, environment, output, theme } = setting;
    const run = await firstValueFrom(findRun$(runs, given.run));
    assertOwn(run);
    const callId = newCallId();
    const options = await optionsOf(run, runs, given);
    await lastValueFrom(fork$(runs.store, run.callId, { ...options, callId }));
    const note = `Forked from ${shortId(run.callId)}: ${shortId(callId)}\n`;
    if (isHumanOutput(given)) output.stream.write(theme.colors.dim(note));
    else environment.stderr.write(note);
    return continueRun(await firstValueFrom(findRun$(runs, callId)), runs, setting);
  });

const optionsOf = async (
  { callId }: CallSummary,
  { store }: RunStore,
  { at, question, edits }: ForkArguments,
): Promise<Pick<Parameters<typeof fork$>[2], 'at' | 'edit'>> => {
  const steps = await lastValueFrom(steps$(store, callId).pipe(toArray()));
  if (question === '') return { at, edit: withTexts(edits, steps) };
  const second = steps[1];
  if (second === undefined) throw tooShort();
  const history = await firstValueFrom(historyOf$(store, callId));
  return { at: second.id, edit: { call: withQuestion(question, history) } };
};

/** Emits the recorded messages before the start of a run. */
const historyOf$ = (
  { driver }: Pick<CallStore, 'driver'>,
  callId: string,
): Observable<readonly unknown[]> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    filter(({ name }) => name === `${callId}/open`),
    take(1),
    map(({ text }) => {
      const opening = parsedJson(text);
      const history: unknown = isRecord(opening) ? opening['history'] : undefined;
      return Array.isArray(history) ? history.map((message: unknown) => message) : [];
    }),
    defaultIfEmpty([]),
  );

const tooShort = (): MillraceError =>
  new MillraceError(
    'invalidRequest',
    'Only the question of this run is recorded. Ask again with npx @millrace/cli "…".',
  );
