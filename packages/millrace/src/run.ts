import type { CallInfo, EndReason, ToolRun } from './values/reply.js';
import { MillraceError } from './values/errors.js';
import {
  assembleMessages,
  type Injected,
  notesMessage,
  nothingInjected,
  taskOf,
} from './models/prompt.js';
import {
  type AssistantMessage,
  type Finish,
  freezeMessage,
  type Message,
  type Suspension,
  type ToolMessage,
  toolCallsOf,
  type UserMessage,
} from './values/message.js';
import { unpaired } from './values/pairing.js';
import type { AskedCall } from './tools/batch.js';
import type { Extras } from './values/tool-output.js';
import { addToPhase, addUsage, noUsage, type Usage, type UsageByPhase } from './values/usage.js';

interface RunState {
  /** Model requests started so far. */
  readonly iteration: number;
  readonly messages: readonly Message[];
  /** The number of `messages` that memory already has. */
  readonly stored: number;
  /** Tool results of earlier calls that memory does not have yet. */
  readonly late: readonly Message[];
  readonly usage: Usage;
  readonly usageByPhase: UsageByPhase;
  readonly toolRuns: readonly ToolRun[];
  /** The tool calls as the model asked for them; `toolRuns` has them as they ran. */
  readonly asked: readonly AskedCall[];
  /** The number of tools that ran, without refused tool calls. */
  readonly executed: number;
  /** Values that tools pass to later tools, and none has taken yet. Never stored. */
  readonly extras: Extras;
  /** Content that every request shows beside the messages. Never stored. */
  readonly injected: Injected;
  /** Notes of phases for every later request, by title. Never stored. */
  readonly notes: Notes;
  /** State of phases for their next turn, by name. Never stored. */
  readonly kept: Readonly<Record<string, unknown>>;
  /** How often the model was asked again since the last message that was kept, by the reason. */
  readonly corrections: Readonly<Record<string, number>>;
}

export type Notes = Readonly<Record<string, string>>;

/** The parts of a run that exist before its loop, beside history and input. */
export interface Brought {
  /** Results for tool calls of earlier calls. */
  readonly late?: readonly Message[];
  readonly injected?: Injected;
  readonly notes?: Notes;
  /** The usage before the loop. */
  readonly spent?: UsageByPhase;
}

/** A run with a next turn. */
export interface OpenRun extends RunState {
  readonly status: 'open';
  /** Messages for the next request only. Never stored. */
  readonly feedback: readonly Message[];
  /** The call is about to end: tool calls of the last message get a result, but do not run. */
  readonly stopping: boolean;
}

/** A run without a next turn. Its last message is stored when the call completes. */
export interface EndedRun extends RunState {
  readonly status: EndReason;
  readonly answer: AssistantMessage;
  /** The validated answer, if the call has an output schema. */
  readonly output?: unknown;
  readonly finish: Finish;
  /** Tool calls that wait for a result. */
  readonly suspensions?: readonly Suspension[];
  /** Set by a closing request, the last one when a limit is reached: the error if its text is no valid output. */
  readonly unusable?: (partial: string) => MillraceError;
}

/** The immutable value that the loop passes from phase to phase. */
export type Run = OpenRun | EndedRun;

/** Starts a run with the history, including results that arrived since, and the input. */
export const startRun = (
  history: readonly Message[],
  input: readonly Message[],
  { late = [], injected = nothingInjected, notes = {}, spent = {} }: Brought = {},
): OpenRun => ({
  status: 'open',
  iteration: 0,
  messages: joined([], [...history, ...input]),
  stored: history.length,
  late,
  usage: Object.values(spent).reduce(addUsage, noUsage),
  usageByPhase: spent,
  toolRuns: [],
  asked: [],
  executed: 0,
  extras: {},
  injected,
  notes,
  kept: {},
  feedback: [],
  corrections: {},
  stopping: false,
});

export const messagesOf = (
  { messages, injected, notes, feedback }: OpenRun,
  { callId }: Pick<CallInfo, 'callId'>,
): readonly Message[] => {
  const shown = assembleMessages(messages, injected, () => taskOf(messages, callId));
  const noted = notesMessage(`${callId}/notes`, notes);
  return noted.length + feedback.length === 0 ? shown : [...shown, ...noted, ...feedback];
};

/** The list is frozen, so receivers may keep it. */
const joined = (before: readonly Message[], added: readonly Message[]): readonly Message[] =>
  Object.freeze([...before, ...added.map(freezeMessage)]);

export const nextIteration = (run: OpenRun): OpenRun => ({ ...run, iteration: run.iteration + 1 });

/** Adds messages, and clears feedback and corrections. Only the last message may have tool calls without results, until `acting`. */
export const append = (run: OpenRun, ...added: readonly Message[]): OpenRun => ({
  ...run,
  messages: joined(run.messages, added),
  feedback: [],
  corrections: {},
});

/** Adds input that has arrived meanwhile. Unlike `append`, it keeps feedback and corrections. */
export const addInput = (run: OpenRun, added: readonly UserMessage[]): OpenRun => ({
  ...run,
  messages: joined(run.messages, added),
});

/** Adds messages for the next request only. They are never stored. */
export const addEphemeral = (run: OpenRun, ...added: readonly Message[]): OpenRun => ({
  ...run,
  feedback: [...run.feedback, ...added],
});

/** Replaces the first `count` messages in later requests of the call. Memory keeps the originals. */
export const compact = (run: OpenRun, count: number, ...instead: readonly Message[]): OpenRun => {
  if (!(Number.isInteger(count) && count >= 0 && count <= run.stored)) {
    throw new MillraceError(
      'invalidState',
      `compact() can replace up to ${run.stored} messages, those that memory has, not ${count}.`,
    );
  }
  return {
    ...run,
    messages: joined([], [...instead, ...run.messages.slice(count)]),
    stored: run.stored - count + instead.length,
  };
};

/** Replaces the last message by `message`, with the tool calls as they ran, and adds their results. */
export const answerTools = (
  run: OpenRun,
  message: AssistantMessage,
  results: ToolMessage,
  {
    toolRuns,
    asked,
    executed,
    extras,
  }: Pick<RunState, 'toolRuns' | 'asked' | 'executed' | 'extras'>,
): OpenRun => ({
  ...run,
  messages: joined(run.messages.slice(0, -1), [message, results]),
  toolRuns: [...run.toolRuns, ...toolRuns],
  asked: [...run.asked, ...asked],
  executed: run.executed + executed,
  extras,
});

/** Asks again: the next request shows the feedback. */
export const correct = (run: OpenRun, kind: string, ...feedback: readonly Message[]): OpenRun => ({
  ...run,
  feedback,
  corrections: { ...run.corrections, [kind]: (run.corrections[kind] ?? 0) + 1 },
});

/** Adds the usage of a request to the phase that made it. */
export const spend = (run: OpenRun, usage: Usage, phase: string): OpenRun => ({
  ...run,
  usage: addUsage(run.usage, usage),
  usageByPhase: addToPhase(run.usageByPhase, phase, usage),
});

/** Sets a note that every later request shows under this title; an empty text removes it. */
export const note = (run: OpenRun, title: string, text: string): OpenRun => {
  const { [title]: _before, ...others } = run.notes;
  return { ...run, notes: text.trim() === '' ? others : { ...others, [title]: text } };
};

/** A typed slot of the run, in which a phase keeps state for its next turn. */
export interface RunKey<Value> {
  /** Returns the value. A tool passes its context. */
  of(run: Pick<Run, 'kept'>): Value;
  set(run: OpenRun, value: Value): OpenRun;
}

/** Creates a slot of the run. Its values are immutable. */
export const runKey = <Value>(name: string, initial: Value): RunKey<Value> => ({
  of: ({ kept }) =>
    // Only `set` writes under this name.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    Object.hasOwn(kept, name) ? (kept[name] as Value) : initial,
  set: (run, value) => ({ ...run, kept: { ...run.kept, [name]: value } }),
});

/** Ends the run with its last message. */
export const end = (
  { feedback: _feedback, stopping: _stopping, ...run }: OpenRun,
  status: EndReason,
  answer: AssistantMessage,
  finish: Finish = 'stop',
): EndedRun => ({ ...run, status, answer, finish });

/** Reopens an ended run. Its answer is not stored yet; the next request shows the feedback. */
export const reopen = (
  {
    status: _s,
    answer: _a,
    finish: _f,
    output: _o,
    suspensions: _,
    unusable: _u,
    ...run
  }: EndedRun,
  ...feedback: readonly Message[]
): OpenRun => ({ ...run, status: 'open', feedback, stopping: false });

/** Whether a run has no next turn. */
export const hasEnded = (run: Run): run is EndedRun => run.status !== 'open';

/** The last message, if it has tool calls without results. */
export const unanswered = ({ messages }: Run): AssistantMessage | undefined => {
  const last = messages.at(-1);
  return last?.role === 'assistant' && toolCallsOf(last).length > 0 ? last : undefined;
};

/** Throws if tool calls of the last message have no results: no provider accepts such a request. */
export const assertAnswered = (run: OpenRun): void => {
  if (unanswered(run) === undefined) return;
  throw new MillraceError(
    'invalidState',
    'Tool calls of the last message have no results, so the model cannot be asked. Add `acting`, or a phase that answers tool calls, after `reasoning`.',
  );
};

/** Throws if tool calls and results are not paired. */
export const assertPaired = (messages: readonly Message[]): void => {
  const fault = unpaired(messages);
  if (fault === undefined) return;
  throw new MillraceError(
    'invalidState',
    `The run holds ${fault}. A phase must add an assistant message and its tool message together.`,
  );
};
