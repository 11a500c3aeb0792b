import type { Observable } from 'rxjs';
import { concat, concatMap, defer, ignoreElements, map, of, take, throwError } from 'rxjs';
import { randomId } from '../seams/call-context.js';
import { failAs } from '../flow/contained.js';
import { MillraceError } from '../values/errors.js';
import { isRecord } from '../values/json.js';
import { checkOptions, isText, type Rule } from '../values/options.js';
import {
  type ForkPoint,
  callStep,
  nearestSteps,
  callBegunBy,
  callOfStep,
  interruptStep,
  queueStep,
} from './call-record.js';
import type { CallStoreDriver, NewRecord, StoreOfCalls } from './call-store-driver.js';
import { checkStored, isStored$, notStored } from './call-store-driver.js';
import { checkCallId } from './conversation-log.js';
import { forkedRecords, type StepEdit } from './forked-records.js';
import { storedSteps$, intentOf, type StoredStep, type StoredSteps, toolStepOf } from './steps.js';

/** Where a call is forked, and what is otherwise in the fork. */
export interface ForkOptions {
  /** The first step that is done anew: its id, such as `'2'` or `'2/0'`, or the first of a turn. */
  readonly at: ForkPoint;
  /** What kept steps are to have given instead, by their ids, each as a value or as an edit such as `otherResult('Sunny.')` makes; or one function of any step. Where it gives nothing a step stays as it is. The loop checks it when it goes on. */
  readonly edit?: StepEdit | Readonly<Record<string, unknown>>;
  /** The id of the new call. Default: a random one. */
  readonly callId?: string;
  /** The session that the new call belongs to: another one than that of the forked call, best a new one. It begins with the history that the call has kept. Default: none. */
  readonly sessionId?: string;
}

const isPoint = (value: unknown): boolean =>
  (typeof value === 'string' && value !== '') ||
  (isRecord(value) && Number.isInteger(value['iteration']));

const forkRules: Readonly<Record<keyof ForkOptions, Rule>> = {
  at: [isPoint, "the id of a step, such as '2/0', or { iteration }"],
  edit: [
    (value) => typeof value === 'function' || isRecord(value),
    'a function of a step, or an object by the ids of steps',
  ],
  callId: [(value) => typeof value === 'string' && value !== '', 'an id'],
  sessionId: isText,
};

/**
 * Makes a new call of the steps of another that come before one of them, and emits its id for `resume$`: kept steps are replayed, later ones are done anew, with their effects and with idempotency keys of
 * the new call. Of parallel tools, those before the point in the model's order are kept. The forked call may run, and does not change. The new call belongs to no session unless `sessionId` says so, and knows its history; sessions of
 * calls below it are copied to `<session>~<fork>`. It has no events before it is resumed. Errors with `invalidResume` if there is no such call, `invalidRequest` if it has no such step, `config` if an edit does not fit the
 * kind of its step, `conflict` if the new id is taken, and `invalidState` if a kept step cannot be read. Cold.
 */
export const fork$ = (
  store: StoreOfCalls,
  callId: string,
  options: ForkOptions,
): Observable<string> => {
  checkStored('fork$()', store, callId);
  checkOptions('fork$()', options, forkRules, ['at']);
  const { driver } = store;
  return defer(() => {
    const { callId: newId = randomId() } = options;
    checkCallId(newId);
    return storedSteps$(driver, callId).pipe(
      map((stored) => {
        if (stored.steps.length === 0) throw stored.broken ?? notStored(callId);
        const kept = stepsBefore(callId, stored, options.at);
        const open = stored.steps.find(({ id }) => id === 'open');
        return forkedRecords(kept, { ...options, callId, newId, open });
      }),
      // The id comes when the new call can be opened.
      concatMap((records) => concat(written$(driver, newId, records), of(newId))),
    );
  });
};

const written$ = (
  driver: CallStoreDriver,
  callId: string,
  records: readonly NewRecord[],
): Observable<never> =>
  defer(() => driver.claim$(callId)).pipe(
    concatMap((claim) =>
      isStored$(driver, callId).pipe(
        concatMap((isStored) =>
          isStored
            ? throwError(() => isTaken(callId))
            : concat(claim.append$(records).pipe(ignoreElements()), of(undefined)),
        ),
      ),
    ),
    take(1),
    ignoreElements(),
    failAs('store', 'The fork could not be written'),
  );

const isTaken = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `There is a call '${callId}' in the store already. Give the fork an id of its own, or none.`,
  );

/** The steps that stand before a point, in the order of the loop. What is to be decided or run anew is not among them: neither the intent of a tool whose result is behind the point, nor that of the tool in which the point is, nor an interrupt behind them. */
const stepsBefore = (
  callId: string,
  { steps, broken }: StoredSteps,
  at: ForkPoint,
): readonly StoredStep[] => {
  const boundary = boundaryIn(steps, at);
  const point = steps[boundary];
  if (point === undefined) throw broken ?? noSuchPoint(callId, steps, at);
  if (point.id === callStep) throw nothingBefore(callId);
  const all = new Set(steps.map(({ id }) => id));
  const before = steps.slice(0, boundary);
  const kept = new Set(before.map(({ id }) => id));
  return withoutLateSignals(
    before.filter(({ id }) => {
      const toolStep = toolStepOf(id);
      if (toolStep === undefined) return true;
      return toolStep !== point.tool && (kept.has(toolStep) || !all.has(toolStep));
    }),
  );
};

const boundaryIn = (steps: readonly StoredStep[], at: ForkPoint): number => {
  if (typeof at !== 'string') return steps.findIndex(({ iteration }) => iteration === at.iteration);
  // A tool is decided on and run as a whole, with all that is done below it; one that was broken off has come to nothing yet.
  const toolStep = toolStepOf(at) ?? at;
  const isThere = steps.some(({ id }) => id === at || id === intentOf(at));
  const isPoint = ({ id, tool }: StoredStep): boolean => id === at || tool === toolStep;
  return isThere ? steps.findIndex(isPoint) : -1;
};

const noSuchPoint = (
  callId: string,
  steps: readonly StoredStep[],
  at: ForkPoint,
): MillraceError => {
  const [what, wanted] =
    typeof at === 'string'
      ? [`step '${at}'`, at]
      : [`iteration ${at.iteration}`, String(at.iteration)];
  const ids = steps.map(({ id }) => id);
  return new MillraceError(
    'invalidRequest',
    `The call '${callId}' has no ${what}. It can be forked at: ${nearestSteps(wanted, ids)}.`,
  );
};

const nothingBefore = (callId: string): MillraceError =>
  new MillraceError(
    'invalidRequest',
    `Nothing of the call '${callId}' stands before its first step. To begin anew, make another call; to begin with another input, fork it at its second step, and edit '${callStep}'.`,
  );

/** Leaves out what came from outside behind all that is kept of a call: an interrupt, and what became of the place that it waited for. They have changed nothing that is kept, and would change what is done anew. Those that kept steps have come of stay. */
const withoutLateSignals = (kept: readonly StoredStep[]): readonly StoredStep[] => {
  const calls = new Set(kept.flatMap(({ record }) => callBegunBy(record.name) ?? []));
  const latest = new Map<string, number>();
  for (const { record } of kept) {
    const call = callOfStep(record.name, calls);
    if (!isSignal(record.name)) {
      latest.set(call, Math.max(latest.get(call) ?? 0, record.position));
    }
  }
  return kept.filter(
    ({ record: { name, position } }) =>
      !isSignal(name) || position < (latest.get(callOfStep(name, calls)) ?? 0),
  );
};

const isSignal = (name: string): boolean =>
  [interruptStep, queueStep].some((step) => name.endsWith(`/${step}`));
