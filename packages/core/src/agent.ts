import { defer, type Observable, Subject } from 'rxjs';
import type { CallInfo } from './values/reply.js';
import type { CallOptions } from './call/call-options.js';
import { checkMoved, isContext, preparedRules, withDefaults } from './call/call-options.js';
import { beginning, opening, runLoop } from './call/answer.js';
import { reviewing } from './call/prepare.js';
import { type Callable, type OutputOf, toCallable, type View } from './call/callable.js';
import { type MillraceError, misuse } from './values/errors.js';
import type { AgentEvent, Listener } from './events.js';
import type { Input } from './seams/input.js';
import { type Layer, readUse, turnThrough, type Use } from './seams/layer.js';
import type { LimitOptions } from './flow/deadline.js';
import type { Model } from './models/model.js';
import { defined, isText, listOf, type Rule } from './values/options.js';
import { nativePhases } from './phases/phase-list.js';
import type { CallDefaults } from './seams/preparation.js';
import { call$, type CallSetup } from './call/run-call.js';
import type { InputSchema } from './values/schema.js';
import { createToolkit } from './tools/toolkit.js';
import type { ContextEntry } from './tools/context-key.js';
import type { ToolEntry } from './tools/types.js';
import { createTrampoline } from './flow/trampoline.js';

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
    // What a call does to its tools is its own.
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

/** What an agent is made of. */
export interface AgentOptions<
  Output extends InputSchema | undefined = InputSchema | undefined,
> extends CallDefaults {
  /** What events and other agents call it. Default: `agent`. */
  readonly name?: string;
  readonly model: Model;
  /** The system prompt, or a function that writes it for a call. */
  readonly instructions?: string | ((call: CallInfo) => string);
  /** Tools, and groups of tools that `toolGroup` has made. A session begins with them, and may change them. */
  readonly tools?: readonly ToolEntry[];
  /** Layers around every call, its steps, its models and its turns, such as `on('preActing', operator)`, `output(schema)` and `insertBefore(reasoning, myPhase)`. Default: none. */
  readonly use?: Use<Output>;
  /** What tools find under context keys. What layers and a call give overrides it. */
  readonly context?: readonly ContextEntry[];
}

/** What an agent is made of whose loop may be another than the model's: it needs no model then. */
type AnyAgentOptions<Output extends InputSchema | undefined> = Omit<
  AgentOptions<Output>,
  'model'
> & { readonly model?: Model };

/** Reads the layers of an agent, or throws a `config` error that names the fix. */
const layersIn = (
  owner: string,
  options: Pick<AnyAgentOptions<InputSchema | undefined>, 'use'>,
): readonly Layer[] => {
  const use = readUse(owner, options.use);
  if (!areFunctions(turnThrough(use, nativePhases))) throw noPhases(owner);
  return use;
};

const areFunctions = (list: unknown): boolean =>
  Array.isArray(list) && list.length > 0 && list.every((each) => typeof each === 'function');

export const agentRules: Readonly<Record<keyof AgentOptions, Rule>> = {
  ...preparedRules,
  name: isText,
  instructions: [
    (value) => typeof value === 'string' || typeof value === 'function',
    'a text, or a function that writes one',
  ],
  use: listOf('layers'),
  context: isContext,
};

const noPhases = (owner: string): MillraceError =>
  misuse(
    `${owner}: the 'turn' of a layer must return a list of phases, such as that of insertBefore(reasoning, myPhase) does.`,
  );
