import { defer, type Observable, Subject } from 'rxjs';
import { type AgentOptions, agentRules, type AnyAgentOptions, layersIn } from './agent-options.js';
import { beginning, opening, runLoop } from './call/answer.js';
import { reviewing } from './call/prepare.js';
import { type CallSetup, call$ } from './run-call.js';
import { type Callable, type OutputOf, toCallable, type View } from './callable.js';
import { checkMoved, type CallOptions, withDefaults } from './call-options.js';
import type { AgentEvent, Listener } from './events.js';
import type { LimitOptions } from './limits.js';
import { defined } from './options.js';
import { createTrampoline } from './trampoline.js';
import type { Input } from './input.js';
import { type Layer, readUse, type Use } from './layer.js';
import type { InputSchema } from './schema.js';
import type { ContextEntry } from './tools/context-key.js';
import type { ToolEntry } from './tools/types.js';
import { createToolkit } from './toolkit.js';

/** An immutable definition: nothing of a call lives in it. A call without a session remembers nothing. */
export interface Agent<out Output = unknown> extends Callable<Output> {
  readonly name: string;
  /** The events of all its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** The tools that each call begins with. */
  readonly tools: readonly ToolEntry[];
  /** The limits of its calls, unless a call has its own. */
  readonly limits: LimitOptions;
  /** Returns the same agent with more layers: they come after its own. Its events are events of this one. */
  with<const Own extends InputSchema | undefined = undefined>(
    ...layers: Use<Own>
  ): Agent<OutputOf<Own, Output>>;
}

/** Defines an agent, or throws a `config` error that names the fix. */
export const createAgent = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  checkMoved('createAgent()', options, agentRules, ['model']);
  return defineAgent('createAgent()', options);
};

/** Defines an agent of options that are its own. `Default` is what its replies hold where it has no `output`. */
export const defineAgent = <const Output extends InputSchema | undefined, Default = undefined>(
  owner: string,
  options: AnyAgentOptions<Output>,
  answer: CallSetup['answer'] = runLoop,
): Agent<OutputOf<Output, Default>> => {
  const use = layersIn(owner, options);
  const { name = 'agent', model: ownModel, instructions, context = [] } = options;
  const settings = withDefaults(options, {});
  const hot = createHotEvents();
  const tools = Object.freeze([...(options.tools ?? [])]);
  const toolkit = createToolkit(tools);
  const native = [opening, beginning, reviewing];

  const begin$ = <Seen>(
    layers: readonly Layer[],
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
      native,
      use: [...layers, ...readUse('The call', given.use)],
      options: {
        ...rest,
        ...withDefaults(settings, given),
        context: [...context, ...layers.flatMap(contextOf), ...(rest.context ?? [])],
      },
      given,
      listener: hot,
      input,
    };
    // What a call without a session does to its tools is its own.
    return defer(() => call$({ ...setup, toolkit: { current: own } }, view));
  };
  const agentWith = <Out>(layers: readonly Layer[]): Agent<Out> => ({
    ...toCallable((input, given, view) => begin$(layers, input, given, view)),
    name,
    tools,
    limits: settings.limits,
    events$: hot.events$,
    with: (...more) => agentWith([...layers, ...readUse('with()', more)]),
  });
  return agentWith(use);
};

const contextOf = ({ info }: Layer): readonly ContextEntry[] => info?.context ?? [];

interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

const createHotEvents = (): HotEvents => {
  const subject = new Subject<AgentEvent>();
  const deliver = createTrampoline();
  return {
    events$: subject.asObservable(),
    get hears() {
      return subject.observed;
    },
    next: (event) => {
      if (subject.observed) deliver(() => subject.next(event));
    },
  };
};
