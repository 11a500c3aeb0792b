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
import type { AgentEvent } from '../events.js';
import { restoreAsyncContext } from '../flow/async-context.js';
import { failAs } from '../flow/contained.js';
import { MillraceError } from '../values/errors.js';
import type { Reply } from '../values/reply.js';
import { isRecord } from '../values/json.js';
import { hasInexact, markedJson } from '../values/exact-json.js';
import { inexactOf } from '../tools/inexact.js';
import { validatedWithoutNulls$ } from '../tools/without-nulls.js';
import { type JsonReading, readJson, readStrictly } from '../values/read-json.js';
import type { OutputLayer, Context } from '../seams/layer.js';
import { trusted } from '../seams/through.js';
import { ready } from '../models/answer-tool.js';
import { askAgain } from '../phases/corrections.js';
import { endInterrupted } from '../phases/limit.js';
import { discardUnlessKept } from '../phases/message-builder.js';
import { reasoning } from '../phases/reasoning.js';
import { type EndedRun, hasEnded, reopen, type Run } from '../run.js';
import { answerForm } from '../seams/call.js';
import { alsoEnded, phaseOfAny } from '../seams/phase.js';
import { waited$ } from '../step.js';
import { answerTextOf, textOf } from '../values/message.js';
import type { InputSchema, Validation, Validator } from '../values/schema.js';
import { brief, validatorOf } from '../values/schema.js';
import { byCall, isSpoken } from '../operators/event-operators.js';
import type { LoopCall } from '../seams/call.js';
import { layerPlaces } from '../seams/layer-places.js';

/**
 * Defines the structured output, `reply.output`: the model is asked for JSON that matches the schema, and may correct
 * it twice; then the call errors with `invalidResponse`. The `output` of a call replaces that of its agent.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, use: [output(z.object({ age: z.number() }))] });
 * const reply = await agent.call('Ada is 36 years old.');
 * console.log(reply.output?.age); // 36; undefined if the call ended otherwise
 * ```
 */
export const output = <const Schema extends InputSchema>(schema: Schema): OutputLayer<Schema> => {
  const validator = validatorOf(schema, "output(): 'schema'");
  const { jsonSchema } = validator;
  const read$ = (text: string): Observable<Validation> => readOutput$(validator, text);
  return trusted({
    name: 'output',
    priority: layerPlaces.outermost,
    single: true,
    schema,
    call:
      ({ local }) =>
      (next) => {
        local(answerForm).required = { jsonSchema, read$, ready };
        return next;
      },
    turn: (phases) => [
      ...phases.flatMap((each) => (each === reasoning ? [each, readAnswer] : [each])),
      readAnswer,
    ],
  });
};

/** Maximum number of corrections in a row. */
const maxCorrections = 2;

/** Reads the output of an answer: after the model gave it, and after a closing request. */
const readAnswer = alsoEnded((context, call) => {
  const form = context.local(answerForm);
  return phaseOfAny((run) => {
    const { required } = form;
    if (required === undefined || !hasEnded(run) || 'output' in run) return run;
    if (run.status !== 'answer' && run.unusable === undefined) return run;
    const { answer, iteration, status } = run;
    const reading$ = required.read$(answerTextOf(answer));
    return waited$(context, `${iteration}/${status}/output`, reading$).pipe(
      map((read) => {
        if (read === undefined) {
          const interrupted = endInterrupted(reopen(run), context, answer);
          return discardUnlessKept(context, interrupted, answer);
        }
        reportReading(context, iteration, textOf(answer), read);
        return read.valid
          ? { ...run, output: read.value }
          : afterInvalidOutput(context, call, run, read.problems);
      }),
    );
  });
});

const reportReading = (
  { hooks }: Pick<Context, 'hooks'>,
  iteration: number,
  before: string,
  read: Validation,
): void => {
  if (read.valid && read.repaired !== undefined) {
    hooks.report(iteration, { type: 'repaired', before, after: JSON.stringify(read.repaired) });
  }
  const { warnings = [] } = read.valid ? {} : read;
  for (const message of warnings) hooks.report(iteration, { type: 'warning', message });
};

const afterInvalidOutput = (
  context: Pick<Context, 'hooks'>,
  { model }: Pick<LoopCall, 'model'>,
  run: EndedRun,
  problems: readonly string[],
): Run => {
  const { answer, corrections, unusable } = run;
  if (unusable !== undefined) throw unusable(textOf(answer));
  if ((corrections['output'] ?? 0) < maxCorrections) {
    const why = `Your answer must be JSON of the requested schema, with no text around it:\n${problems.map((problem) => `- ${problem}`).join('\n')}`;
    return askAgain(context, reopen(run), 'output', answer, why);
  }
  throw new MillraceError(
    'invalidResponse',
    `The model '${model.name}' gave no valid output, ${maxCorrections + 1} times in a row: ${problems.join('; ')}`,
    { partial: textOf(answer) },
  );
};

/** Returns the output of a reply. Throws `invalidState` with the reason if the call ended without one. */
export const outputOf = <Output>({ output: value, reason, text }: Reply<Output>): Output => {
  if (value !== undefined) return value;
  const why = reason === 'answer' ? 'its agent has no output(schema)' : `it ended with '${reason}'`;
  const answer = text === '' ? '' : ` Its text is: ${brief(text, 200)}`;
  throw new MillraceError('invalidState', `The call has no output: ${why}.${answer}`);
};

/** Parses the output in an answer: the whole text, or its last JSON object. Emits one result and completes. */
export const readOutput$ = (validator: Validator, text: string): Observable<Validation> => {
  const reading = readValue(text);
  return 'problem' in reading
    ? of({ valid: false, problems: [reading.problem] })
    : defer(() => validated$(validator, reading.value)).pipe(
        restoreAsyncContext(),
        failAs('unknown', "The schema of 'output' failed"),
      );
};

const validated$ = (validator: Validator, value: unknown): Observable<Validation> => {
  if (!hasInexact(value)) return validatedWithoutNulls$(validator, value);
  const { problems, warnings } = inexactOf(value, validator.jsonSchema, "The schema of 'output'");
  return of({ valid: false, problems, warnings });
};

const readValue = (text: string): JsonReading => {
  const whole = readStrictly(text.trim());
  if (whole !== undefined) return whole;
  const found = objectsIn(text);
  const last = found.at(-1);
  if (last === undefined) return { problem: 'it contains no JSON object' };
  const read = readStrictly(last.text) ?? readJson(last.text);
  if (!('problem' in read)) return read;
  // An object after the first one may only look like JSON.
  const before = last.isWhole ? found.map((it) => readStrictly(it.text)) : [];
  const problem = `its outermost JSON object cannot be read: ${read.problem}`;
  return before.findLast((each) => each !== undefined) ?? { problem };
};

interface JsonObject {
  readonly text: string;
  readonly isWhole: boolean;
}

const begin = /\{(?=\s*(?:["'“‘}]|[\p{L}_$][\p{L}\p{N}_$]*\s*:|\/[/*]))|\[(?=\s*\{)/gu;

/** The outermost JSON objects of an answer. Never looks inside one, even if it does not parse. */
const objectsIn = (text: string): readonly JsonObject[] => {
  const found: JsonObject[] = [];
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

/** A value that is still streaming: any part may be missing. */
export type PartialOf<T> = T extends readonly (infer Item)[]
  ? readonly PartialOf<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: PartialOf<T[Key]> }
    : T;

export interface PartialOutputOptions {
  /** Minimum time between two previews of one call, in milliseconds. Default: 50. */
  readonly everyMs?: number | undefined;
  /** Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

/**
 * Emits previews of the structured output while it streams: one every `everyMs` milliseconds for each call, and the
 * complete one with its message. Strings may be cut off; numbers and literals are complete or missing. Nothing is
 * validated before `reply.output`. Skips sub-agents that do not answer for the root call. Completes with the events.
 */
export const partialOutput$ = <Output = unknown>(
  event$: Observable<AgentEvent>,
  { everyMs = 50, scheduler = asyncScheduler }: PartialOutputOptions = {},
): Observable<PartialOf<Output>> =>
  event$.pipe(
    filter(isSpoken),
    byCall(),
    mergeMap((call$) => call$.pipe(partialAnswers, atIntervals(everyMs, scheduler))),
    map(({ deltas }) => preview(deltas.join(''))),
    filter((value): value is PartialOf<Output> => value !== undefined),
  );

interface PartialAnswer {
  readonly messageId: string;
  /** Mutated in place: copying it for each delta would take quadratic time. */
  readonly deltas: string[];
  /** Number of deltas: identifies a state of this message. */
  readonly length: number;
  readonly characters: number;
  readonly isWhole: boolean;
}

const partialAnswers: OperatorFunction<AgentEvent, PartialAnswer> = (event$) =>
  event$.pipe(
    scan(withEvent, emptyAnswer('')),
    distinctUntilChanged(),
    filter(({ length }) => length > 0),
  );

const emptyAnswer = (messageId: string): PartialAnswer => ({
  messageId,
  deltas: [],
  length: 0,
  characters: 0,
  isWhole: false,
});

const withEvent = (partial: PartialAnswer, event: AgentEvent): PartialAnswer => {
  switch (event.type) {
    case 'reasoningChunk':
    case 'summaryChunk': {
      if (event.kind !== 'text') return partial;
      const { messageId, delta } = event;
      const { deltas, characters } =
        messageId === partial.messageId ? partial : emptyAnswer(messageId);
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
      return { ...partial, isWhole: true };
    default:
      return partial;
  }
};

/** Characters per millisecond between previews: long text takes long to parse and is shown less often. */
const perMs = 200;

const atIntervals = (
  everyMs: number,
  scheduler: SchedulerLike,
): OperatorFunction<PartialAnswer, PartialAnswer> =>
  connect((partial$) =>
    merge(
      partial$.pipe(filter(({ isWhole }) => isWhole)),
      partial$.pipe(
        throttle(({ characters }) => timer(Math.max(everyMs, characters / perMs), scheduler), {
          leading: true,
          trailing: true,
        }),
        takeUntil(partial$.pipe(ignoreElements(), endWith(true))),
      ),
    ).pipe(distinctUntilChanged((a, b) => a.messageId === b.messageId && a.length === b.length)),
  );

const preview = (text: string): unknown => {
  const start = text.indexOf('{');
  if (start === -1) return undefined;
  try {
    const { json, mark } = markedJson(text.slice(start));
    const isWhole = (value: unknown): boolean =>
      mark === undefined || typeof value !== 'string' || !value.startsWith(mark);
    return ownOnly(parse(json, Allow.OBJ | Allow.ARR | Allow.STR), isWhole);
  } catch {
    return undefined;
  }
};

/** The parser assigns keys, so a `__proto__` key in the text would set the prototype. */
const ownOnly = (value: unknown, isWhole: (value: unknown) => boolean): unknown => {
  if (Array.isArray(value)) return value.filter(isWhole).map((item) => ownOnly(item, isWhole));
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => isWhole(item))
      .map(([key, item]) => [key, ownOnly(item, isWhole)]),
  );
};
