import { noop, type Observable, Subject } from 'rxjs';
import { observed } from './flow/eventual.js';
import type { AnyRun } from './values/reply.js';
import type { CallOptions } from './call/call-options.js';
import { checkPlaced, isContext, preparedRules, withDefaults } from './call/call-options.js';
import { runLoop } from './call/answer.js';
import type { Instructions } from './call/instructions.js';
import { type Callable, type OutputOf, toCallable, type View } from './call/callable.js';
import { type MillraceError, misuse, toMillraceError } from './values/errors.js';
import type { AgentEvent, Listener } from './events.js';
import type { Input } from './seams/input.js';
import type { Layer, Use } from './seams/layer.js';
import { readUse } from './seams/read-use.js';
import { turnThrough } from './seams/through.js';
import type { LimitOptions } from './flow/deadline.js';
import type { Model } from './models/model.js';
import { defined } from './values/json.js';
import { isText, listOf, type Rule } from './values/options.js';
import { nativePhases } from './loop.js';
import type { CallDefaults } from './seams/preparation.js';
import { type CallSetup, compose, type Composition } from './call/create-call.js';
import { call$ } from './call/run-call.js';
import type { InputSchema } from './values/schema.js';
import { createToolkit } from './tools/toolkit.js';
import type { ContextEntry } from './tools/context-key.js';
import type { RunsOf, Tool, ToolEntry, ToolGroup } from './tools/types.js';
import { sharedEvents } from './flow/shared-events.js';
import { createTrampoline } from './flow/trampoline.js';

/** An immutable definition of an agent. It has no state: calls know nothing of earlier ones. */
export interface Agent<out Output = unknown, out Run extends AnyRun = AnyRun> extends Callable<
  Output,
  unknown,
  Run
> {
  readonly name: string;
  /** The events of all its calls and their sub-agents. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** The tools of each call at its start. */
  readonly tools: readonly ToolEntry[];
  /** The default limits of its calls. */
  readonly limits: LimitOptions;
  /** Returns the agent with additional layers, after its own. Its events also appear in this agent's `events$`. */
  with<const Own extends InputSchema | undefined = undefined>(
    ...layers: Use<Own>
  ): Agent<OutputOf<Own, Output>, Run>;
}

/**
 * Creates an agent. Throws a `config` error that names the fix if an option is invalid.
 *
 * @example
 * ```ts
 * const agent = createAgent({ model, tools: [weather], instructions: 'Be brief.' });
 * console.log((await agent.call('What is the weather in Oslo?')).text);
 * agent.stream$('And in Bergen?').pipe(text()).subscribe((delta) => process.stdout.write(delta));
 * ```
 */
export const createAgent = <
  const Output extends InputSchema | undefined = undefined,
  const Tools extends readonly (Tool | ToolGroup)[] = readonly (Tool | ToolGroup)[],
>(
  options: AgentOptions<Output, Tools>,
): Agent<OutputOf<Output, undefined>, RunsOf<Tools>> => {
  return asConfigError('createAgent()', () => {
    checkPlaced('createAgent()', options, agentRules, ['model']);
    return defineAgent('createAgent()', options);
  });
};

/** Options are foreign objects: their getters and the `turn` of a layer may throw anything. */
const asConfigError = <T>(owner: string, make: () => T): T => {
  try {
    return make();
  } catch (cause) {
    throw toMillraceError(cause, 'config', `${owner}: its options cannot be read`);
  }
};

/** As `createAgent`, with another loop. `Default` is the type of `reply.output` without an `output` layer. */
export const defineAgent = <
  const Output extends InputSchema | undefined,
  Default = undefined,
  Run extends AnyRun = AnyRun,
>(
  owner: string,
  options: AnyAgentOptions<Output>,
  answer: CallSetup['answer'] = runLoop,
): Agent<OutputOf<Output, Default>, Run> => {
  const use = layersIn(owner, options);
  const { name = 'agent', model: ownModel, instructions, context = [] } = options;
  const settings = withDefaults(options, {});
  const hot = createHotEvents();
  const tools = Object.freeze([...(options.tools ?? [])]);
  const toolkit = createToolkit(tools);

  const begin$ = <Seen>(
    composition: Composition,
    input: Input,
    given: CallOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const { tools: _, model = ownModel, ...rest } = defined(given);
    const own = given.tools === undefined ? toolkit : createToolkit(given.tools);
    const setup: Omit<CallSetup, 'toolkit'> = {
      agentName: name,
      answer,
      model,
      instructions,
      context,
      composition:
        given.use === undefined
          ? composition
          : compose([...composition.use, ...readUse('The call', given.use)]),
      options: { ...rest, ...withDefaults(settings, given) },
      given,
      listener: hot,
      input,
    };
    // A cell for each subscription: changes of tools stay within the call.
    return observed(() => call$({ ...setup, toolkit: { current: own } }, view));
  };
  const agentWith = <Out>(layers: readonly Layer[]): Agent<Out, Run> => {
    const composition = compose(layers);
    return {
      ...toCallable<Out, Run>((input, given, view) => begin$(composition, input, given, view)),
      name,
      tools,
      limits: settings.limits,
      events$: hot.events$,
      with: (...more) =>
        agentWith([...layers, ...asConfigError('with()', () => readUse('with()', more))]),
    };
  };
  return agentWith(use);
};

interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

const createHotEvents = (): HotEvents => {
  const subject = new Subject<AgentEvent>();
  const deliver = createTrampoline();
  let report: Parameters<Listener['next']>[1] = noop;
  const failing = () => {
    const reportTo = report;
    return (cause: unknown): void => {
      const error = toMillraceError(cause, 'unknown', 'A subscriber of events$ failed');
      reportTo({ type: 'handlerError', of: 'events$', name: 'subscriber', error });
    };
  };
  return {
    events$: sharedEvents(subject, failing),
    isShared: true,
    hears: () => subject.observed,
    next: (event, reportOf) => {
      if (!subject.observed) return;
      deliver(() => {
        report = reportOf;
        subject.next(event);
        // An agent does not hold its last call.
        report = noop;
      });
    },
  };
};

export interface AgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
  Tools extends readonly (Tool | ToolGroup)[] = readonly (Tool | ToolGroup)[],
> extends CallDefaults {
  /** The name in events and for other agents. Default: `agent`. */
  readonly name?: string | undefined;
  readonly model: Model;
  /**
   * The system prompt: a string, a function that returns it for a call, or a list of both. Strings at the start of a list
   * are the same in every call, so vendors can cache them.
   */
  readonly instructions?: Instructions | undefined;
  /** Tools and tool groups. */
  readonly tools?: Tools | undefined;
  /**
   * Layers around every call, its steps, its models and its turns, such as `on('preActing', operator)`,
   * `output(schema)` and `insertBefore(reasoning, myPhase)`. Default: none.
   */
  readonly use?: Use<Output> | undefined;
  /** Values of context keys. Layers and calls override them. */
  readonly context?: readonly ContextEntry[] | undefined;
}

/** Options of an agent whose loop may not need a model. */
type AnyAgentOptions<Output extends InputSchema | undefined> = Omit<
  AgentOptions<Output>,
  'model'
> & { readonly model?: Model };

/** Returns the layers of an agent, or throws a `config` error that names the fix. */
const layersIn = (
  owner: string,
  options: Pick<AnyAgentOptions<InputSchema | undefined>, 'use'>,
): readonly Layer[] => {
  const use = readUse(owner, options.use);
  if (!areFunctions(asConfigError(owner, () => turnThrough(use, nativePhases))))
    throw noPhases(owner);
  return use;
};

const areFunctions = (list: unknown): boolean =>
  Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'function');

export const agentRules: Readonly<Record<keyof AgentOptions, Rule>> = {
  ...preparedRules,
  name: isText,
  instructions: [
    (value) => [value].flat().every((it) => typeof it === 'string' || typeof it === 'function'),
    'a string, a function that returns one, or a list of both',
  ],
  use: listOf('layers'),
  context: isContext,
};

const noPhases = (owner: string): MillraceError =>
  misuse(
    `${owner}: the 'turn' of a layer must return a list of phases, as that of insertBefore(reasoning, myPhase) does.`,
  );
