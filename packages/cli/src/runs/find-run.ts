import { MillraceError } from 'millrace';
import { nearMatches } from 'millrace/values';
import { type CallSummary, calls$, type ReadableCall } from 'millrace/journal';
import { map, type Observable, takeWhile, toArray } from 'rxjs';
import { assistantName } from '../create-assistant.js';
import { storeOption } from './hints.js';
import type { RunStore } from './open-run-store.js';
import { leastId, shortId } from './run-id.js';
import { describePlace, missingNote, type StorePlace } from './store-place.js';

/** Emits the run with this id or unique id prefix. Errors with `invalidRequest` if no run or several match. */
export const findRun$ = (
  { store, place }: Pick<RunStore, 'store' | 'place'>,
  wanted: string,
): Observable<CallSummary> =>
  calls$(store).pipe(
    // A whole id needs none of the older runs.
    takeWhile(({ callId }) => callId !== wanted, true),
    toArray(),
    map((all) => {
      const found = all.filter(({ callId }) => callId.startsWith(wanted));
      const [first, ...more] = found;
      const run = found.find(({ callId }) => callId === wanted) ?? first;
      if (run === undefined) throw unknown(wanted, all, place);
      if (more.length > 0 && run.callId !== wanted) throw ambiguous(wanted, found);
      return run;
    }),
  );

const unknown = (wanted: string, all: readonly CallSummary[], place: StorePlace): MillraceError => {
  const ids = all.map(({ callId }) => callId);
  const near = nearMatches(
    wanted,
    ids.map((id) => id.slice(0, Math.max(wanted.length, leastId))),
  );
  const sessionOf = (run: CallSummary) => (run.status === 'unreadable' ? undefined : run.sessionId);
  const sessions = new Set(all.map(sessionOf).filter((id) => id?.startsWith(wanted) === true));
  const session = sessions.has(wanted) || sessions.size !== 1 ? wanted : [...sessions][0];
  const inSession = all.find((run) => sessionOf(run) === session);
  const meant =
    inSession !== undefined
      ? ` It is a session: its last run is ${shortId(inSession.callId, ids)}.`
      : near.length > 0
        ? ` Did you mean ${near.slice(0, shown).join(' or ')}?`
        : '';
  const where = `${describePlace(place)}${missingNote(place)}`;
  return new MillraceError(
    'invalidRequest',
    `There is no run '${wanted}' in ${where}.${meant} "npx @millrace/cli runs${storeOption(named(place))}" lists the runs.`,
  );
};

const shown = 5;

/** The value of `--store`; undefined for the default place. */
const named = (place: StorePlace): string | undefined => {
  switch (place.type) {
    case 'sqlite':
      return place.isDefault ? undefined : place.path;
    case 'files':
      return place.directory;
    case 'postgres':
      return place.url;
    case 'none':
      return undefined;
  }
};

const ambiguous = (wanted: string, found: readonly CallSummary[]): MillraceError => {
  const ids = found.map(({ callId }) => callId);
  const some = ids.slice(0, shown).map((id) => shortId(id, ids));
  const more = ids.length > shown ? ` and ${ids.length - shown} more` : '';
  return new MillraceError(
    'invalidRequest',
    `The ids of ${ids.length} runs start with '${wanted}': ${some.join(', ')}${more}. Use a longer prefix.`,
  );
};

/** Whether a run can be read and is one of the command's own agent. */
export const isOwn = (run: CallSummary): run is ReadableCall =>
  run.status !== 'unreadable' && run.agent === assistantName;

/** Where to resume a run that is not of the command's own agent. */
export const resumeElsewhere = (run: CallSummary): string =>
  run.status === 'unreadable'
    ? `This run cannot be read: ${run.why}`
    : `This run belongs to the agent '${run.agent}', which this command does not have. Resume it in the program of that agent: journal(store).resume$(agent, '${run.callId}').`;

/** Throws for an unreadable run, and for a run of another agent, whose tools and instructions are missing here. */
export function assertOwn(run: CallSummary): asserts run is ReadableCall {
  if (!isOwn(run)) throw new MillraceError('invalidRequest', resumeElsewhere(run));
}
