import type { Observable } from 'rxjs';
import { concat, concatMap, defer, ignoreElements, map, noop, of, take, throwError } from 'rxjs';
import { randomId } from '../seams/call-scope.js';
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
import { ending } from './draining.js';
import { forkedRecords, type StepEdit } from './forked-records.js';
import { storedSteps$, intentOf, type StoredStep, type StoredSteps, toolStepOf } from './steps.js';

export interface ForkOptions {
  /** The first step that is performed again: its id, such as `'2'` or `'2/0'`, or the start of a turn. A tool call or its intent is before both. */
  readonly at: ForkPoint;
  /**
   * New values of kept steps, by id: a value, or an edit such as `otherResult('Sunny.')`; or a function of each step,
   * which returns `undefined` to keep it. Checked when the call is resumed.
   */
  readonly edit?: StepEdit | Readonly<Record<string, unknown>> | undefined;
  /** The id of the new call. Default: random. */
  readonly callId?: string | undefined;
  /** The session of the new call, not that of the forked one. It starts with the fork's history. Default: none. */
  readonly sessionId?: string | undefined;
}

const isPoint = (value: unknown): boolean =>
  (typeof value === 'string' && value !== '') ||
  (isRecord(value) && Number.isInteger(value['iteration']));

const forkRules: Readonly<Record<keyof ForkOptions, Rule>> = {
  at: [isPoint, "the id of a step, such as '2/0', or { iteration }"],
  edit: [
    (value) => typeof value === 'function' || isRecord(value),
    'a function of a step, or an object keyed by step ids',
  ],
  callId: [(value) => typeof value === 'string' && value !== '', 'an id'],
  sessionId: isText,
};

/**
 * Creates a new call from the steps of another one before a point, and emits its id for `resume$`, which replays these steps and performs later
 * ones again, with their effects and new idempotency keys. Of parallel tool calls, those before the point in the model's order are kept. The
 * forked call may be running, and does not change. The new call has its history, no session unless `sessionId` is set, and no events before it is
 * resumed; sessions of its sub-agents are copied to `<session>~<fork>`.
 *
 * Errors with `invalidResume` if there is no such call, `invalidRequest` if it has no such step, `config` if an edit does not
 * fit its step, `conflict` if the new id exists, and `invalidState` if a kept step cannot be read. Cold.
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
      // Emits the id after the new call was closed for writing.
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
    ending(noop),
    ignoreElements(),
    failAs('store', 'The fork could not be written'),
  );

const isTaken = (callId: string): MillraceError =>
  new MillraceError(
    'conflict',
    `The store already has a call '${callId}'. Give the fork a unique id, or none.`,
  );

/**
 * The steps before a point, in the order of the loop, without those to repeat: intents of tool calls whose results
 * come after the point or contain it, and later interrupts.
 */
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
  // A tool call is repeated as a whole, with its sub-agents.
  const toolStep = toolStepOf(at) ?? at;
  const isThere = steps.some(({ id }) => id === at || id === intentOf(at));
  const isForkPoint = ({ id, tool }: StoredStep): boolean => id === at || tool === toolStep;
  return isThere ? steps.findIndex(isForkPoint) : -1;
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
    `The call '${callId}' cannot be forked at its first step. Make a new call instead; to change the input, fork it at its second step, and edit '${callStep}'.`,
  );

/** Drops an interrupt and a queue record after the last kept step of a call: they would only affect repeated steps. */
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
