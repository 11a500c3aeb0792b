import {
  catchError,
  defaultIfEmpty,
  defer,
  ignoreElements,
  map,
  type Observable,
  of,
  tap,
} from 'rxjs';
import { type MillraceError, toMillraceError } from '../errors.js';
import { isRecord, parsedJson } from '../json.js';
import { placeName } from '../places.js';
import { records$ } from './call-store.js';
import type { CallStoreDriver, StoredRecord } from './call-store-driver.js';

/** A step of a call as it is stored. */
export interface StoredStep {
  /** Its place in its outermost call, such as `3/0`; below it, behind the id of the tool use: `call_3_0/1`. */
  readonly id: string;
  readonly record: StoredRecord;
  /** Which turn of the outermost loop it is a part of; absent before the first and behind the last. */
  readonly iteration?: number;
  /** The tool step of the outermost call in which it was run, such as `3/0`: of that step itself, of its intent, and of all steps of the calls below it. */
  readonly tool?: string;
}

/** The steps of a call, as far as they can be read. */
export interface StoredSteps {
  /** In the order of the loop. */
  readonly steps: readonly StoredStep[];
  /** Why there are none behind them. */
  readonly broken?: MillraceError;
}

/** Reads the steps of a call and emits them once, as recorded; the parallel tools of a turn come one after the other, each with everything below it. */
export const storedSteps$ = (driver: CallStoreDriver, callId: string): Observable<StoredSteps> =>
  defer(() => {
    const records: StoredRecord[] = [];
    return records$(driver, callId, { kind: 'step' }).pipe(
      tap((record) => records.push(record)),
      ignoreElements(),
      defaultIfEmpty(undefined),
      map((): { readonly broken?: MillraceError } => ({})),
      catchError((cause: unknown) => {
        const broken = toMillraceError(cause);
        if (broken.code !== 'invalidState') throw broken;
        return of({ broken });
      }),
      map((end) => ({ steps: inOrder(callId, records), ...end })),
    );
  });

/** The id of the step that says what is to be run, of the one that says what came of it. */
export const intentOf = (toolStep: string): string => `${toolStep}/intent`;

/** The id of the step that says what came of an intent; nothing where the id is of no intent. */
export const toolStepOf = (id: string): string | undefined =>
  /(?:^|\/)\d+\/\d+\/intent$/u.test(id) ? id.slice(0, -'/intent'.length) : undefined;

/** Where a step stands among the others. */
interface Placed extends StoredStep {
  /** Compared one by one. */
  readonly place: readonly [turn: number, index: number, position: number];
}

const inOrder = (callId: string, records: readonly StoredRecord[]): readonly StoredStep[] => {
  const prefix = `${callId}/`;
  const steps = records.map((record) => ({
    id: record.name.startsWith(prefix) ? record.name.slice(prefix.length) : record.name,
    record,
  }));
  const begun = new Map<string, number>();
  const tools = new Map<string, Tool>();
  for (const { id, record } of steps) {
    const [, turn, index] = ownTool.exec(id) ?? [];
    if (turn === undefined || index === undefined) continue;
    if (!begun.has(turn)) begun.set(turn, record.position);
    const toolUse = id.endsWith('/intent') ? valueOf(record.text, 'toolUse') : undefined;
    const used = valueIn(toolUse, 'id');
    if (typeof used === 'string') tools.set(placeName(used), { turn, index });
  }
  const placed = steps.map(({ id, record }): Placed => {
    const { position } = record;
    const tool = toolOf(id, tools);
    if (tool === undefined) {
      const [, turn] = own.exec(id) ?? [];
      const iteration = turn === undefined ? {} : { iteration: Number(turn) };
      return { id, record, ...iteration, place: [position, 0, position] };
    }
    const { turn, index } = tool;
    return {
      id,
      record,
      iteration: Number(turn),
      tool: `${turn}/${index}`,
      place: [begun.get(turn) ?? position, Number(index), position],
    };
  });
  return placed.sort(byPlace).map(({ place: _, ...step }) => step);
};

/** The place of a tool use in the outermost call. */
interface Tool {
  readonly turn: string;
  readonly index: string;
}

const own = /^(\d+)(?:\/|$)/u;
const ownTool = /^(\d+)\/(\d+)(?:\/intent)?$/u;

/** The tool use that a step is a part of. */
const toolOf = (id: string, tools: ReadonlyMap<string, Tool>): Tool | undefined => {
  const [, turn, index] = ownTool.exec(id) ?? [];
  if (turn !== undefined && index !== undefined) return { turn, index };
  if (own.test(id)) return undefined;
  let [place = ''] = id.split('/', 1);
  // Of one use there may be more calls: those of its approval, one behind the other, side by side.
  while (!tools.has(place) && place.includes('+')) place = place.slice(0, place.lastIndexOf('+'));
  return tools.get(place);
};

const byPlace = (a: Placed, b: Placed): number => {
  const [turn, index, position] = a.place;
  const [otherTurn, otherIndex, otherPosition] = b.place;
  return turn - otherTurn || index - otherIndex || position - otherPosition;
};

/** A field of what may be JSON, where it is that of an object. */
const valueOf = (text: string, key: string): unknown => valueIn(parsedJson(text), key);

const valueIn = (value: unknown, key: string): unknown =>
  isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
