import { defer, type Observable, Subject } from 'rxjs';
import { type AgentOptions, agentRules, type AnyAgentOptions, partsOf } from './agent-options.js';
import { beginning, runLoop } from './call/answer.js';
import { conversation } from './call/conversation.js';
import { preparing } from './call/prepare.js';
import { reviewing } from './call/review.js';
import { type CallSetup, call$ } from './run-call.js';
import { type Callable, type OutputOf, toCallable } from './callable.js';
import { isJournaled } from './places.js';
import { type CallDefaults, type CallOptions, refuseMoved, withDefaults } from './call-options.js';
import { MillraceError } from './errors.js';
import type { AgentEvent, Listener } from './events.js';
import { createTrampoline } from './trampoline.js';
import type { Input } from './input.js';
import { noJournal, type OpenJournal } from './journal/journal.js';
import type { CallRecord } from './journal/call-record.js';
import { createDraining, type Drainable } from './journal/draining.js';
import { journaled$ } from './journal/journaled.js';
import { type Resumable, resumable, resumed$, type ResumeOptions } from './journal/resume.js';
import { type Layer, readUse, type Use } from './layer.js';
import { checkOptions, defined } from './options.js';
import { createValidator, type InputSchema, type Validator } from './schema.js';
import type { ContextEntry } from './tools/context-key.js';
import type { ToolEntry } from './tools/types.js';
import { createToolkit } from './toolkit.js';
import type { View } from './view.js';

/** An immutable definition: nothing of a call lives in it. A call without a session remembers nothing. */
export interface Agent<out Output = unknown>
  extends Callable<Output>, Resumable<Output>, Drainable {
  readonly name: string;
  /** The events of all its calls, and of the calls below them. Hot; never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
  /** The tools that each call begins with. */
  readonly tools: readonly ToolEntry[];
  /** What its calls do unless they say otherwise. */
  readonly defaults: CallDefaults;
  /** Returns the same agent with more layers: they come after its own. Its events are events of this one, and it is drained with it. */
  with(...layers: Use): Agent<Output>;
}

/** Defines an agent, or throws a `config` error that names the fix. */
export const createAgent = <const Output extends InputSchema | undefined = undefined>(
  options: AgentOptions<Output>,
): Agent<OutputOf<Output, undefined>> => {
  refuseMoved('createAgent()', options);
  checkOptions('createAgent()', options, agentRules, ['model']);
  return defineAgent('createAgent()', options);
};

/** Defines an agent of options that are its own. `Default` is what its replies hold where it has no `output`. */
export const defineAgent = <const Output extends InputSchema | undefined, Default = undefined>(
  owner: string,
  options: AnyAgentOptions<Output>,
  answer: CallSetup['answer'] = runLoop,
): Agent<OutputOf<Output, Default>> => {
  const { interceptors, defaults, use } = partsOf(owner, options);
  const { name = 'agent', journal = noJournal, model: ownModel } = options;
  const { instructions, context = [] } = options;
  const hot = createHotEvents();
  const draining = createDraining();
  const tools = Object.freeze([...(defaults.tools ?? options.tools ?? [])]);
  const toolkit = createToolkit(tools);
  const ownOutput = outputOf(options.output, owner);
  const around = [beginning, ...preparing(interceptors), reviewing];
  const talking = conversation({ instructions });

  const begin$ = <Seen>(
    layers: readonly Layer[],
    input: Input,
    given: CallOptions,
    view: View<Seen>,
    resumed?: Resumed,
  ): Observable<Seen> => {
    const { tools: _tools, output, model = ownModel, ...others } = withDefaults(defaults, given);
    const own = given.tools === undefined ? toolkit : createToolkit(given.tools);
    const { history, ...rest } = others;
    const carried = resumed?.begun.history;
    const isPlain = history === undefined && carried === undefined;
    const setup: Omit<CallSetup, 'toolkit'> = {
      agentName: name,
      answer,
      model,
      output: outputOf(output, 'The call') ?? ownOutput,
      interceptors,
      native: [isPlain ? talking : conversation({ instructions, history, carried }), ...around],
      use: [...layers, ...readUse('The call', given.use)],
      options: {
        ...rest,
        context: [...context, ...layers.flatMap(contextOf), ...(rest.context ?? [])],
      },
      given,
      listener: hot,
      input,
    };
    return defer(() => {
      // What a call without a session does to its tools is its own.
      const whole: CallSetup = { ...setup, toolkit: { current: own } };
      if (resumed !== undefined) {
        const { journal: open, begun } = resumed;
        return call$({ ...whole, opened: { journal: open, resumes: true }, begun }, view);
      }
      // A call that a tool makes is written down where that tool is.
      if (journal !== noJournal && !isJournaled(rest.parent)) {
        return journaled$(journal, whole, view, draining);
      }
      return rest.parent === undefined ? draining.track$(call$(whole, view)) : call$(whole, view);
    });
  };
  const resume$ = <Seen>(
    layers: readonly Layer[],
    callId: string,
    given: ResumeOptions,
    view: View<Seen>,
  ): Observable<Seen> => {
    const sessionId = layers.findLast(({ info }) => info)?.info?.sessionId;
    const gone$ = resumed$({ journal, agentName: name }, callId, given, (open, begun) => {
      if (begun.sessionId !== sessionId) throw ofSession(callId, begun.sessionId);
      const goOn: Resumed = { journal: draining.untilDrained(open, callId), begun };
      const own = { ...begun.options, ...defined(given), callId };
      return begin$(layers, begun.input, own, view, goOn);
    });
    return draining.track$(gone$, callId);
  };
  const agentWith = (layers: readonly Layer[]): Agent<OutputOf<Output, Default>> => ({
    ...toCallable((input, given, view) => begin$(layers, input, given, view)),
    ...resumable<OutputOf<Output, Default>>((callId, given, view) =>
      resume$(layers, callId, given, view),
    ),
    drain$: draining.drain$,
    drain: draining.drain,
    name,
    tools,
    defaults,
    events$: hot.events$,
    with: (...more) => agentWith([...layers, ...readUse('with()', more)]),
  });
  return agentWith(use);
};

const ofSession = (callId: string, sessionId: string | undefined): MillraceError => {
  const owner = sessionId === undefined ? 'agent' : `sessions(agent).open('${sessionId}')`;
  return new MillraceError(
    'invalidResume',
    `Resume the call '${callId}' with ${owner}.resume$('${callId}').`,
  );
};

const contextOf = ({ info }: Layer): readonly ContextEntry[] => info?.context ?? [];

/** A call that goes on, with its journal. */
interface Resumed {
  readonly journal: OpenJournal;
  readonly begun: CallRecord;
}

/** Schemas that were understood before: a call that is made again brings the same one. */
const outputs = new WeakMap<object, Validator>();

const outputOf = (schema: InputSchema | undefined, owner: string): Validator | undefined => {
  if (schema === undefined) return undefined;
  const validator = outputs.get(schema) ?? createValidator(schema, `${owner}: 'output'`);
  outputs.set(schema, validator);
  return validator;
};

/** A stream of events that runs whether or not somebody listens. */
interface HotEvents extends Listener {
  /** Hot. Never errors, never completes. */
  readonly events$: Observable<AgentEvent>;
}

/** Makes a hot stream that shows one event to all its subscribers before it shows the next to any. */
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
