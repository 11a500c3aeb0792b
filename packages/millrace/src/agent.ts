import type { Observable } from 'rxjs';
import { deferWork } from './flow/eventual.js';
import type { AnyRun } from './values/reply.js';
import type { CallOptions } from './call/call-options.js';
import { checkPlaced, withDefaults } from './call/call-options.js';
import { runLoop } from './call/answer.js';
import { type Callable, type OutputOf, toCallable, type View } from './call/callable.js';
import type { AgentEvent } from './events.js';
import type { Input } from './seams/input.js';
import type { Layer, Use } from './seams/layer.js';
import { readUse } from './seams/read-use.js';
import type { LimitOptions } from './flow/deadline.js';
import { defined } from './values/json.js';
import type { CallSetup } from './call/create-call.js';
import { call$ } from './call/run-call.js';
import type { InputSchema } from './values/schema.js';
import { createToolkit } from './tools/toolkit.js';
import type { RunsOf, Tool, ToolEntry, ToolGroup } from './tools/types.js';
import { createHotEvents } from './call/hot-events.js';
import {
  type AgentOptions,
  type AnyAgentOptions,
  agentRules,
  asConfigError,
  layersIn,
} from './call/agent-options.js';
import { type Composition, compose } from './call/compose.js';

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

/** As `createAgent`, with another loop. `Default` is the type of `reply.output` without an `output` layer. */
export const defineAgent = <
  const Output extends InputSchema | undefined,
  Default = undefined,
  Run extends AnyRun = AnyRun,
>(
  owner: string,
  options: AnyAgentOptions<Output>,
  createAnswer: CallSetup['createAnswer'] = runLoop,
): Agent<OutputOf<Output, Default>, Run> => {
  const use = layersIn(owner, options);
  const { name = 'agent', model: ownModel, instructions, context = [] } = options;
  const settings = withDefaults(options, {});
  const hot = createHotEvents();
  const tools = Object.freeze([...(options.tools ?? [])]);
  const toolkit = createToolkit(tools);

  const makeCall$ = <Seen>(
    composition: Composition,
    input: Input,
    given: CallOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const { tools: _, model = ownModel, ...rest } = defined(given);
    const ownToolkit = given.tools === undefined ? toolkit : createToolkit(given.tools);
    const setup: Omit<CallSetup, 'toolkit'> = {
      agentName: name,
      createAnswer,
      model,
      instructions,
      context,
      composition:
        given.use === undefined
          ? composition
          : compose([...composition.use, ...readUse('The call', given.use)]),
      // `withDefaults` returns `limits` and `request`: those of the call over those of the agent, key by key.
      options: { ...rest, ...withDefaults(settings, given) },
      given,
      listener: hot,
      input,
    };
    // Kernel code returns values or Observables (flow/eventual.ts): `deferWork` is its `defer`. Each subscription is a call of its own, and
    // tools that it adds stay in it.
    // `view` selects what its subscriber sees: the reply, or the events.
    return deferWork(() => call$({ ...setup, toolkit: { current: ownToolkit } }, view));
  };
  const agentWith = <Out>(layers: readonly Layer[]): Agent<Out, Run> => {
    const composition = compose(layers);
    return {
      ...toCallable<Out, Run>((input, given, view) => makeCall$(composition, input, given, view)),
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
