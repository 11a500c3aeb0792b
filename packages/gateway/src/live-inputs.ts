import type { LoopCall } from 'millrace/call';
import {
  addTools,
  answerTool,
  cell,
  type Layer,
  type Context,
  type Model,
  timeouts,
} from 'millrace';
import { limit, reasoning } from 'millrace/phases';
import { checkOptions, type Complete, defined, isRecord, longestDelayMs } from 'millrace/values';
import { concatMap, map, type Observable, of, ReplaySubject } from 'rxjs';
import { aroundPhases, inCall } from './around-phases.js';
import { first$, liveRules, type LiveOptions, liveSource, stepIdOf } from './live-source.js';
import { newest$, opened$, type Recording, step } from './live-steps.js';
import { isModel } from './model-parts.js';
import { areTexts, type Entries, isGroup, namesIn } from './tool-entries.js';

/**
 * Takes the instructions of an agent from an Observable, such as a feature flag or a prompt store; they replace its
 * `instructions`, and an empty string means none. A call waits for the first value, within its time-outs and until an
 * interrupt; a `liveInput` event reports the wait. While calls run, the source has one subscription, and calls that start
 * meanwhile get its last value; the end of the last call unsubscribes. With a journal, a resumed call has the same
 * instructions. An error of the source, or one without any value, fails the call: see `onError`.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, use: [liveInstructions(flags.prompt$, { at: 'turn' })] });
 * ```
 */
export const liveInstructions = (
  instructions$: Observable<string>,
  options: LiveOptions = {},
): Layer => {
  const name = 'liveInstructions';
  const { at, onError } = read(name, options);
  const source = liveSource(name, instructions$, texts, onError);
  const used = cell('call', (): Used<string> => ({}));
  return {
    ...base(name),
    single: true,
    // After `conversation`, which sets the instructions of the agent.
    priority: 61,
    call: (context) => (next) => (call) => {
      if (call.status !== 'prepared') return next(call);
      const form = { isWritten: (written: unknown) => written === null || texts.accepts(written) };
      const openStep$ = context.perform<string | null>({
        ...step(stepIdOf(name, context), () => first$(source, name, context)),
        cut: () => of(null),
        form,
      });
      return source.holding$(
        openStep$.pipe(
          concatMap((instructions) => {
            if (instructions === null) return next(call);
            begin(context.local(used), instructions);
            return next({ ...call, instructions });
          }),
        ),
      );
    },
    ...(at === 'turn' && {
      turn: aroundPhases([reasoning, limit], (inner, place) =>
        inCall(inner, (context, call, run) => {
          const state = context.local(used);
          return newest$(source, name, context, place === reasoning ? run : undefined, {
            isNew: (value) => value !== state.now,
            write: (value) => value,
            isWritten: texts.accepts,
          }).pipe(
            map((value = state.now) => {
              state.now = value;
              return instructed(call, state.first, value);
            }),
          );
        }),
      ),
    }),
  };
};

const texts = {
  accepts: (value: unknown): value is string => typeof value === 'string',
  what: 'strings',
};

/** Replaces the instructions in the system prompt, in which they come first. */
const instructed = (call: LoopCall, former = '', now = ''): LoopCall => {
  const { system = '', ...request } = call.request;
  if (now === former || !system.startsWith(former)) return call;
  const rest = former === '' ? system : system.slice(former.length + 2);
  const changed = [now, rest].filter((part) => part !== '').join('\n\n');
  return { ...call, request: { ...request, ...(changed !== '' && { system: changed }) } };
};

/**
 * Takes the model of an agent from an Observable, for example by load or by a feature flag; it replaces the `model`. Waits,
 * shares its source and fails as `liveInstructions`. The model itself is not recorded: a resumed call continues with the
 * current one, and a `warning` reports another name.
 */
export const liveModel = (model$: Observable<Model>, options: LiveOptions = {}): Layer => {
  const name = 'liveModel';
  const { at, onError } = read(name, options);
  const source = liveSource(name, model$, models, onError);
  const used = cell('call', (): Used<Model> => ({}));
  return {
    ...base(name),
    single: true,
    priority: 61,
    call: (context) => (next) => (call) => {
      if (call.status !== 'prepared') return next(call);
      return source.holding$(
        opened$(source, name, context, modelNames).pipe(
          concatMap((opened) => {
            if (opened === undefined) return next(call);
            const { value: model } = opened;
            begin(context.local(used), model);
            return next({ ...call, model });
          }),
        ),
      );
    },
    ...(at === 'turn' && {
      turn: aroundPhases([reasoning, limit], (inner, place) =>
        inCall(inner, (context, call, run) => {
          const state = context.local(used);
          return newest$(source, name, context, place === reasoning ? run : undefined, {
            isNew: (value) => value !== state.now,
            ...modelNames,
          }).pipe(
            concatMap((written) => (written === undefined ? of(state.now) : source.latest$)),
            map((model) => {
              state.now = model;
              return model === undefined || model === state.first
                ? call
                : { ...call, model: ready(model) };
            }),
          );
        }),
      ),
    }),
  };
};

const models = {
  accepts: (value: unknown): value is Model => isModel[0](value),
  what: "models, such as openai('gpt-5-mini')",
};

const modelNames: Recording<Model, string> = {
  write: ({ name }) => name,
  isWritten: texts.accepts,
  changed: (started, { name }) =>
    started === name
      ? undefined
      : `The call started with the model '${started}', and continues with '${name}'.`,
};

/** As the model of a call: it keeps the time-outs of the call, and supports `output(schema)`. */
const ready = (model: Model): Model => {
  const takesSchema = model.unsupported?.includes('outputSchema') !== true;
  return timeouts(takesSchema ? model : answerTool(model), { chunkMs: longestDelayMs });
};

/**
 * Adds tools and groups of tools from an Observable of lists, such as `mcpTools(server)`, which follows `list_changed`. Each
 * list replaces the one before. A name that the call has already is left out, with a `warning`. Waits, shares its
 * source and fails as `liveInstructions`. With a journal, the names are recorded: a resumed call has those of these tools
 * that still exist, and a `warning` names the others; a model that calls one gets the result for an unknown tool.
 */
export const liveTools = (tools$: Observable<Entries>, options: LiveOptions = {}): Layer => {
  const name = 'liveTools';
  const { at, onError } = read(name, options);
  const source = liveSource(name, tools$, lists, onError);
  const used = cell('call', (): Offered => ({
    offers$: new ReplaySubject(1),
    reported: new Set(),
  }));
  const offer = (list: Entries, names: readonly string[], context: Reporting, state: Offered) => {
    const { entries, warnings } = offered(list, names, state.taken ?? []);
    warnings.forEach((message) => {
      if (state.reported.has(message)) return;
      state.reported.add(message);
      context.hooks.report(context.hooks.iteration(), { type: 'warning', message });
    });
    state.now = list;
    state.offers$.next(entries);
  };
  return {
    ...base(name),
    // As `addTools`: after the session has set its own tools, before a selection.
    priority: 54,
    call: (context) => (next) => (call) => {
      if (call.status !== 'prepared') return next(call);
      const state = context.local(used);
      state.taken = namesIn(call.toolkit.current.entries);
      return source.holding$(
        opened$(source, name, context, toolNames).pipe(
          concatMap((opened) => {
            if (opened === undefined) return next(call);
            offer(opened.value, opened.written, context, state);
            return addTools(state.offers$).call?.(context)(next)(call) ?? next(call);
          }),
        ),
      );
    },
    ...(at === 'turn' && {
      turn: aroundPhases([reasoning], (inner) =>
        inCall(inner, (context, call, run) => {
          const state = context.local(used);
          return newest$(source, name, context, run, {
            isNew: (value) => value !== state.now,
            ...toolNames,
          }).pipe(
            concatMap((names) =>
              names === undefined
                ? of(call)
                : source.latest$.pipe(
                    map((list) => {
                      offer(list, names, context, state);
                      return call;
                    }),
                  ),
            ),
          );
        }),
      ),
    }),
  };
};

interface Offered {
  readonly offers$: ReplaySubject<Entries>;
  readonly reported: Set<string>;
  /** The names that the call has without this layer. */
  taken?: readonly string[];
  now?: Entries;
}

type Reporting = Pick<Context, 'hooks'>;

const isEntry = (value: unknown): boolean =>
  isRecord(value) &&
  typeof value['name'] === 'string' &&
  (typeof value['run$'] === 'function' || Array.isArray(value['tools']));

const lists = {
  accepts: (value: unknown): value is Entries => Array.isArray(value) && value.every(isEntry),
  what: 'lists of tools and groups of tools',
};

/** The recorded ones of a list, without names that are taken. */
const offered = (
  list: Entries,
  names: readonly string[],
  taken: readonly string[],
): { readonly entries: Entries; readonly warnings: readonly string[] } => {
  const known = new Set(taken);
  const warnings: string[] = [];
  const isFree = ({ name }: { readonly name: string }): boolean => {
    if (!names.includes(name)) return false;
    if (known.has(name)) {
      warnings.push(`The tool '${name}' of liveTools() is left out: the name is taken.`);
      return false;
    }
    known.add(name);
    return true;
  };
  const entries = list.flatMap((entry): Entries => {
    if (!isFree(entry)) return [];
    return isGroup(entry) ? [{ ...entry, tools: entry.tools.filter(isFree) }] : [entry];
  });
  return { entries, warnings };
};

const toolNames: Recording<Entries, readonly string[]> = {
  write: namesIn,
  isWritten: areTexts,
  changed: (names, list) => {
    const there = namesIn(list);
    const missing = names.filter((name) => !there.includes(name));
    return missing.length === 0
      ? undefined
      : `Tools of liveTools() no longer exist: ${missing.join(', ')}.`;
  },
};

/** The value at the start of a call, and that of the current turn. */
interface Used<T> {
  first?: T;
  now?: T | undefined;
}

const begin = <T>(used: Used<T>, value: T): void => {
  used.first = value;
  used.now = value;
};

/** Parts that all layers of live inputs share. */
const base = (name: string) => ({ name }) as const;

const read = (name: string, options: LiveOptions): Complete<LiveOptions> => {
  checkOptions(`${name}()`, options, liveRules);
  return { at: 'call', onError: 'fail', ...defined(options) };
};
