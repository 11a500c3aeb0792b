import {
  cell,
  type Layer,
  type Context,
  type Model,
  type ModelChunk,
  type Tool,
  restoreAsyncContext,
} from 'millrace';
import type { Call } from 'millrace/call';
import { acting, type PhaseFactory, reasoning } from 'millrace/phases';
import { checkOptions, defined, wholeNumber, nearMatches } from 'millrace/values';
import { defer, finalize, merge, take, tap } from 'rxjs';
import { aroundPhases } from './around-phases.js';
import { areTexts, namesIn } from './tool-entries.js';
import { closing, createSpeculation, type Speculation } from './speculation.js';

export interface SpeculateOptions {
  /** The tools that may start early: their names, or a test. They must have no side effects. */
  readonly tools: readonly string[] | ((tool: Tool) => boolean);
  /** Maximum number of early runs of a call at a time. Further tool calls start as usual. Default: 4. */
  readonly max?: number | undefined;
}

declare module 'millrace' {
  interface Events {
    /** A tool starts while its message still streams; its run is used by the tool call, or cancelled. */
    readonly speculation: {
      readonly toolCallId: string;
      readonly name: string;
      readonly status: 'started' | 'used' | 'cancelled';
      /** Milliseconds since the early start. */
      readonly ms: number;
    };
  }
}

/**
 * Starts tools without side effects while the message that calls them still streams, as soon as their arguments are
 * complete and valid. The tool call takes the run over: progress so far is reported when it acts, the rest as it comes.
 *
 * A run is cancelled in the same tick, with its `signal`, if its message is discarded (a restart, a retry, a veto, an
 * interrupt, unsubscribing) or if the tool call differs in its id, name or input. Tools that need approval, take `extras`
 * of others or are `exclusive` never start early, and none does if an interceptor of `preActing` or a layer such as `approval` decides
 * on its call. The context of an early run has the messages before the one that calls it.
 *
 * With a journal, an early run precedes the record of its intent, and a process that ends may run it again: this is why
 * it must have no side effects. Replayed messages start nothing. Tools that call agents are not for it: the usage of an
 * early run is not counted.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools: [search, buy], use: [speculate({ tools: ['search'] })] });
 * ```
 */
export const speculate = (options: SpeculateOptions): Layer => {
  checkOptions('speculate()', options, rules, ['tools']);
  const { tools, max = 4 } = options;
  const isChosen = typeof tools === 'function' ? tools : ({ name }: Tool) => tools.includes(name);
  const ofCall = cell('call', () => createSpeculation(max, isChosen));
  return {
    name: 'speculate',
    single: true,
    // Within `addTools` and `selectTools`, whose tools it starts.
    priority: 95,
    call: (context) => (next) => (call) => {
      if (call.status !== 'prepared') return next(call);
      if (typeof tools !== 'function') checkNames(tools, call, context);
      const own = context.local(ofCall);
      const toolkit = takingOver(call.toolkit, (tool) =>
        isChosen(tool) ? own.taking(tool) : tool,
      );
      return merge(own.running$, next({ ...call, toolkit })).pipe(take(1));
    },
    model: (context) => (next) => listening(next, context.local(ofCall)),
    turn: aroundPhases([reasoning, acting], (inner, place) => {
      const speculating: PhaseFactory = (context, call) => {
        const own = context.local(ofCall);
        return place === reasoning
          ? (run$) =>
              run$.pipe(
                tap((run) => own.begin(run, context, call)),
                inner(context, call),
                tap((run) => own.settle(run)),
              )
          : (run$) =>
              run$.pipe(
                inner(context, call),
                tap(() => own.cancel()),
              );
      };
      return speculating;
    }),
  };
};

const rules = {
  tools: [
    (value: unknown) => typeof value === 'function' || areTexts(value),
    'a list of names of tools, or a function of a tool',
  ],
  max: wholeNumber(1),
} as const;

/** Reports each name that no tool of a call has, not even one of an inactive group. */
const checkNames = (names: readonly string[], { toolkit }: Call, { hooks }: Context): void => {
  const known = namesIn(toolkit.current.entries);
  names
    .filter((name) => !known.includes(name))
    .forEach((name) => {
      const near = nearMatches(name, known, 1).map((it) => ` Did you mean '${it}'?`);
      const message = `The tool '${name}' of speculate() does not exist.${near.join('')}`;
      hooks.report(hooks.iteration(), { type: 'warning', message });
    });
};

/** A model whose tool calls are followed while they stream. */
const listening = (model: Model, own: Speculation): Model => ({
  name: model.name,
  ...defined({
    unsupported: model.unsupported,
    keepsTime: model.keepsTime,
    toolsInPrompt: model.toolsInPrompt,
  }),
  stream$: (request, context) =>
    own.opens(context.stepId)
      ? defer(() => {
          const following = followed(own);
          return model.stream$(request, context).pipe(
            restoreAsyncContext(),
            tap(following.hear),
            finalize(() => {
              if (!following.isWhole()) own.cancel();
            }),
          );
        })
      : model.stream$(request, context),
});

/** Starts each tool call of a response when its arguments are complete. */
const followed = (own: Speculation) => {
  let parts = own.parts();
  let closed = new Map<string, ReturnType<typeof closing>>();
  let isWhole = false;
  const hear = (chunk: ModelChunk): void => {
    if (chunk.type === 'finish') isWhole = true;
    if (chunk.type === 'restart') {
      own.cancel();
      parts = own.parts();
      closed = new Map();
    }
    if (chunk.type !== 'toolCall') return;
    const { part } = parts.add(chunk, 1);
    if (part.refusal !== undefined || !own.mayStart(part.name)) return;
    const read = closed.get(part.id) ?? closing();
    closed.set(part.id, read);
    const input = chunk.input ?? read(chunk.json ?? '');
    if (input !== undefined) own.start(part, input);
  };
  return { hear, isWhole: () => isWhole };
};

type Toolkit = Call['toolkit']['current'];

/** A view of the tools of a call with some of them changed. */
const takingOver = (toolkit: Call['toolkit'], change: (tool: Tool) => Tool): Call['toolkit'] => {
  let seen: Toolkit | undefined;
  let view: Toolkit | undefined;
  return {
    get current() {
      const { current } = toolkit;
      if (view === undefined || seen !== current) {
        const tools = current.tools.map(change);
        const byName = new Map(tools.map((tool) => [tool.name, tool]));
        view = { ...current, tools, find: (name) => byName.get(name) };
        seen = current;
      }
      return view;
    },
    // Made of the entries, which have the tools as they are.
    set current(changed) {
      toolkit.current = changed;
    },
  };
};
