import { Allow, parse } from 'partial-json';
import {
  asyncScheduler,
  connect,
  defer,
  distinctUntilChanged,
  endWith,
  filter,
  ignoreElements,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  type OperatorFunction,
  scan,
  type SchedulerLike,
  takeUntil,
  throttle,
  timer,
} from 'rxjs';
import type { AnswerForm } from '../seams/call.js';
import type { AgentEvent } from '../events.js';
import { failAs } from '../flow/contained.js';
import { isRecord } from '../values/json.js';
import { type JsonReading, readJson, readStrictly } from '../values/read-json.js';
import { type OutputLayer, trusted } from '../seams/layer.js';
import { ready } from '../models/answer-tool.js';
import type { InputSchema, Validation, Validator } from '../values/schema.js';
import { validatorOf } from '../values/schema.js';
import { byCall, isSpoken } from '../operators/event-operators.js';

/** Says what an answer must be, for `reply.output`: the model is asked for JSON of the schema, and corrected up to twice; then the call errors with `invalidResponse`. That of a call takes the place of its agent's. */
export const output = <const Schema extends InputSchema>(schema: Schema): OutputLayer<Schema> => {
  const validator = validatorOf(schema, "output(): 'schema'");
  const { jsonSchema } = validator;
  const form: AnswerForm = {
    jsonSchema,
    read$: (text) => readOutput$(validator, text),
    ready,
  };
  return trusted({
    name: 'output',
    // Outside of all layers that may answer.
    priority: -Number.MAX_VALUE,
    single: true,
    schema,
    call: () => (next) => (call) => next({ ...call, output: form }),
  });
};

/** Reads the structured output in the text of an answer: the whole text, or the last JSON object in it if a model has put words or a fence around it. Emits one verdict and completes. */
export const readOutput$ = (output: Validator, text: string): Observable<Validation> => {
  const reading = readValue(text);
  return 'problem' in reading
    ? of({ valid: false, problems: [reading.problem] })
    : defer(() => output.validation$(reading.value)).pipe(
        failAs('unknown', "The schema of 'output' failed"),
      );
};

const readValue = (text: string): JsonReading => {
  const whole = readStrictly(text.trim());
  if (whole !== undefined) return whole;
  const found = objectsIn(text);
  const last = found.at(-1);
  if (last === undefined) return { problem: 'it holds no JSON object' };
  const read = readStrictly(last.text) ?? readJson(last.text);
  if (!('problem' in read)) return read;
  // What stands behind an object may only look like one.
  const before = last.isWhole ? found.map((it) => readStrictly(it.text)) : [];
  const problem = `its outermost JSON object cannot be read: ${read.problem}`;
  return before.findLast((each) => each !== undefined) ?? { problem };
};

interface Found {
  readonly text: string;
  /** The last bracket is there. */
  readonly isWhole: boolean;
}

const begin = /\{(?=\s*(?:["'“‘}]|[\p{L}_$][\p{L}\p{N}_$]*\s*:|\/[/*]))|\[(?=\s*\{)/gu;

/** The outermost objects of a text. It never looks inside one, even if that one does not parse: what stands in it is a part of an answer. */
const objectsIn = (text: string): readonly Found[] => {
  const found: Found[] = [];
  let end = 0;
  for (const { index } of text.matchAll(begin)) {
    if (index < end) continue;
    const closing = endOf(text, index);
    end = closing ?? text.length;
    found.push({ text: text.slice(index, end), isWhole: closing !== undefined });
  }
  return found;
};

const endOf = (text: string, from: number): number | undefined => {
  let depth = 0;
  let inString = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '\\' && inString) at += 1;
    else if (character === '"') inString = !inString;
    else if (!inString && '{['.includes(character)) depth += 1;
    else if (!inString && '}]'.includes(character)) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
};

/** A value that is still being written: anything may be missing yet. */
export type PartialOf<T> = T extends readonly (infer Item)[]
  ? readonly PartialOf<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: PartialOf<T[Key]> }
    : T;

/** How often a partial output is shown. */
export interface PartialOutputOptions {
  /** The shortest time between two of a call, in milliseconds. Default: 50. */
  readonly everyMs?: number;
  /** Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/**
 * Emits previews of the structured output while it is written, from the events of calls: one every so many milliseconds for each call, and the complete one with its message. Strings may be cut; numbers and words are complete or missing; nothing is validated before `reply.output`. A discarded message starts over. Leaves out sub-agents that do not speak for the root. Completes with the events.
 */
export const partialOutput$ = <Output = unknown>(
  event$: Observable<AgentEvent>,
  { everyMs = 50, scheduler = asyncScheduler }: PartialOutputOptions = {},
): Observable<PartialOf<Output>> =>
  event$.pipe(
    filter(isSpoken),
    byCall(),
    mergeMap((call$) => call$.pipe(drafts, sampled(everyMs, scheduler))),
    map(({ deltas }) => preview(deltas.join(''))),
    filter((value): value is PartialOf<Output> => value !== undefined),
  );

interface Draft {
  readonly messageId: string;
  /** It grows in place: a copy for each delta would cost the square of their number. */
  readonly deltas: string[];
  /** How many deltas there are: what tells one state of a draft from another. */
  readonly length: number;
  readonly characters: number;
  readonly isWhole: boolean;
}

const drafts: OperatorFunction<AgentEvent, Draft> = (event$) =>
  event$.pipe(
    scan(grown, nothing('')),
    distinctUntilChanged(),
    filter(({ length }) => length > 0),
  );

const nothing = (messageId: string): Draft => ({
  messageId,
  deltas: [],
  length: 0,
  characters: 0,
  isWhole: false,
});

const grown = (draft: Draft, event: AgentEvent): Draft => {
  switch (event.type) {
    case 'reasoningChunk':
    case 'summaryChunk': {
      if (event.kind !== 'text') return draft;
      const { messageId, delta } = event;
      const { deltas, characters } = messageId === draft.messageId ? draft : nothing(messageId);
      deltas.push(delta);
      return {
        messageId,
        deltas,
        length: deltas.length,
        characters: characters + delta.length,
        isWhole: false,
      };
    }
    case 'postReasoning':
    case 'postSummary':
      return { ...draft, isWhole: true };
    default:
      return draft;
  }
};

/** Characters that a millisecond of waiting pays for: a long text takes long to parse, and is shown less often. */
const perMs = 200;

const sampled = (everyMs: number, scheduler: SchedulerLike): OperatorFunction<Draft, Draft> =>
  connect((draft$) =>
    merge(
      draft$.pipe(filter(({ isWhole }) => isWhole)),
      draft$.pipe(
        throttle(({ characters }) => timer(Math.max(everyMs, characters / perMs), scheduler), {
          leading: true,
          trailing: true,
        }),
        takeUntil(draft$.pipe(ignoreElements(), endWith(true))),
      ),
    ).pipe(distinctUntilChanged((a, b) => a.messageId === b.messageId && a.length === b.length)),
  );

const preview = (text: string): unknown => {
  const start = text.indexOf('{');
  if (start === -1) return undefined;
  try {
    return ownOnly(parse(text.slice(start), Allow.OBJ | Allow.ARR | Allow.STR));
  } catch {
    return undefined;
  }
};

/** The parser sets keys by assignment, so that a `__proto__` in the text would become a prototype. */
const ownOnly = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(ownOnly);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, ownOnly(item)]));
};
