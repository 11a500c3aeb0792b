import { defer, EMPTY, type Observable } from 'rxjs';
import type { CallInfo, EndReason, ToolRun } from './values/reply.js';
import { MillraceError } from './values/errors.js';
import {
  assembleMessages,
  grown,
  type Injected,
  notesMessage,
  nothingInjected,
  taskOf,
  withoutLast,
} from './models/prompt.js';
import {
  type AssistantMessage,
  type Finish,
  freezeMessage,
  type Message,
  type Suspension,
  type ToolMessage,
  type ToolResultBlock,
  toolUsesOf,
  type UserMessage,
} from './values/message.js';
import { cell, type Locals } from './step.js';
import type { Use } from './tools/batch.js';
import type { Extras } from './values/tool-output.js';
import { addToPhase, addUsage, noUsage, type Usage, type UsageByPhase } from './values/usage.js';

/** What the loop asks the model to do better. */
export type Correction = 'malformed' | 'thought' | 'emptyAnswer' | 'output' | 'again' | 'halted';

interface RunState {
  /** Reasoning calls that have begun. */
  readonly iteration: number;
  readonly messages: readonly Message[];
  /** How many of `messages` are in memory. */
  readonly stored: number;
  /** Results of tools of earlier calls, which memory does not have yet. */
  readonly late: readonly Message[];
  readonly usage: Usage;
  /** What of it each phase has cost. */
  readonly usageByPhase: UsageByPhase;
  readonly toolRuns: readonly ToolRun[];
  /** The uses of tools that the model asked for, as it did: those of `toolRuns` are as they were run. */
  readonly uses: readonly Use[];
  /** How many tools have been run: a use that was refused is none. */
  readonly executed: number;
  /** What tools have passed on to others, past the model, and none of them has taken yet. Never stored. */
  readonly extras: Extras;
  /** What every request shows beside the messages, and memory never gets. */
  readonly injected: Injected;
  /** What phases tell the model in every request from then on, by title. Never stored. */
  readonly notes: Notes;
  /** What phases keep for their next turn, by name. Never stored. */
  readonly kept: Readonly<Record<string, unknown>>;
}

/** Texts under their titles. */
export type Notes = Readonly<Record<string, string>>;

export interface Brought {
  /** Results that came for tools of earlier calls. */
  readonly late?: readonly Message[];
  readonly injected?: Injected;
  readonly notes?: Notes;
  /** What has been spent before the loop. */
  readonly spent?: UsageByPhase;
}

/** A call in progress: it has a next turn. */
export interface OpenRun extends RunState {
  readonly status: 'open';
  /** Shown to the model in the next request only, and never stored. */
  readonly feedback: readonly Message[];
  readonly corrections: Readonly<Partial<Record<Correction, number>>>;
  /** Tools that the last message asks for are answered, but not run: the call is to end. */
  readonly stopping: boolean;
}

/** A call that has no next turn. Its last message is stored when the call completes. */
export interface EndedRun extends RunState {
  readonly status: EndReason;
  readonly answer: AssistantMessage;
  /** What the answer says, where its form was given. */
  readonly output?: unknown;
  readonly finish: Finish;
  /** Tool calls that wait for a result. */
  readonly suspensions?: readonly Suspension[];
}

/** The value that flows through the loop. */
export type Run = OpenRun | EndedRun;

/** Begins a run: what memory holds, with results that have come since in their places, then what was asked. */
export const open = (
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
  uses: [],
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

/** Whoever gets the list may keep it: it never changes, and freezing it again costs nothing. */
const joined = (before: readonly Message[], added: readonly Message[]): readonly Message[] => {
  const fresh = added.map(freezeMessage);
  return grown(Object.freeze([...before, ...fresh]), before, fresh);
};

/** As `joined`, with the last message before them in another version. */
const rejoined = (before: readonly Message[], last: Message, added: Message): readonly Message[] =>
  joined(withoutLast(before), [last, added]);

export const nextIteration = (run: OpenRun): OpenRun => ({ ...run, iteration: run.iteration + 1 });

/** Adds messages, the tool uses among them answered in order; clears what was said for one request only. */
export const append = (run: OpenRun, ...added: readonly Message[]): OpenRun => ({
  ...run,
  messages: joined(run.messages, added),
  feedback: [],
  corrections: {},
});

export const addInput = (run: OpenRun, added: readonly UserMessage[]): OpenRun => ({
  ...run,
  messages: joined(run.messages, added),
});

/** Adds messages that the next request shows and no other: they are never stored. */
export const addEphemeral = (run: OpenRun, ...added: readonly Message[]): OpenRun => ({
  ...run,
  feedback: [...run.feedback, ...added],
});

/** Replaces the first messages for the rest of the call, in requests only: memory still gets the originals. */
export const compact = (run: OpenRun, count: number, ...instead: readonly Message[]): OpenRun => {
  if (!(Number.isInteger(count) && count >= 0 && count <= run.stored)) {
    throw new MillraceError(
      'invalidState',
      `compact() can replace the ${run.stored} messages that memory has, and not ${count}.`,
    );
  }
  return {
    ...run,
    messages: joined([], [...instead, ...run.messages.slice(count)]),
    stored: run.stored - count + instead.length,
  };
};

export const answerTools = (
  run: OpenRun,
  asked: AssistantMessage,
  results: ToolMessage,
  { toolRuns, uses, executed, extras }: Pick<RunState, 'toolRuns' | 'uses' | 'executed' | 'extras'>,
): OpenRun => ({
  ...run,
  messages: rejoined(run.messages, asked, results),
  toolRuns: [...run.toolRuns, ...toolRuns],
  uses: [...run.uses, ...uses],
  executed: run.executed + executed,
  extras,
});

/** Asks again: the next request shows what was wrong, once. */
export const correct = (
  run: OpenRun,
  kind: Correction,
  ...feedback: readonly Message[]
): OpenRun => ({
  ...run,
  feedback,
  corrections: { ...run.corrections, [kind]: (run.corrections[kind] ?? 0) + 1 },
});

/** Adds what a request cost, and what it was for. */
export const spend = (run: OpenRun, usage: Usage, phase: string): OpenRun => ({
  ...run,
  usage: addUsage(run.usage, usage),
  usageByPhase: addToPhase(run.usageByPhase, phase, usage),
});

/** Tells the model something in every request from now on, in the place of what it was told under this title; an empty text takes that back. */
export const note = (run: OpenRun, title: string, text: string): OpenRun => {
  const { [title]: _before, ...others } = run.notes;
  return { ...run, notes: text.trim() === '' ? others : { ...others, [title]: text } };
};

/** A place in the run where a phase keeps something for its next turn. */
export interface RunKey<Value> {
  /** What is kept there: also for a tool, by its context. */
  of(run: Pick<Run, 'kept'>): Value;
  set(run: OpenRun, value: Value): OpenRun;
}

/** Makes a place in the run. What is kept there is immutable. */
export const runKey = <Value>(name: string, initial: Value): RunKey<Value> => ({
  of: ({ kept }) =>
    // Under its name stands only what `set` has put there.
    // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
    Object.hasOwn(kept, name) ? (kept[name] as Value) : initial,
  set: (run, value) => ({ ...run, kept: { ...run.kept, [name]: value } }),
});

/** Ends the run with its last message. */
export const end = (
  { feedback: _feedback, corrections: _corrections, stopping: _stopping, ...run }: OpenRun,
  status: EndReason,
  answer: AssistantMessage,
  finish: Finish = 'stop',
): EndedRun => ({ ...run, status, answer, finish });

/** Takes the end of a run back. What it answered is not stored yet; `feedback` is shown in the next request. */
export const reopen = (
  { status: _s, answer: _a, finish: _f, output: _o, suspensions: _, ...run }: EndedRun,
  ...feedback: readonly Message[]
): OpenRun => ({ ...run, status: 'open', feedback, corrections: {}, stopping: false });

/** Tells whether a run has no next turn. */
export const hasEnded = (run: Run): run is EndedRun => run.status !== 'open';

/** The assistant's message at the end of the run whose tools nobody has answered yet. */
export const unanswered = ({ messages }: Run): AssistantMessage | undefined => {
  const last = messages.at(-1);
  return last?.role === 'assistant' && toolUsesOf(last).length > 0 ? last : undefined;
};

/** Refuses a run whose last tools nobody has answered: no provider would take a request with it. */
export const assertAnswered = (run: OpenRun): void => {
  if (unanswered(run) === undefined) return;
  throw new MillraceError(
    'invalidState',
    'The model is to be asked, but tools that it asked for before have no results. The phases need `acting`, or one that does the same, between `reasoning` and the next turn.',
  );
};

/** Finds a tool use that lacks its one result, right behind it and in order; `undefined` when all is well. */
export const unpaired = (messages: readonly Message[]): string | undefined => {
  const fault = messages.find((message, index) => {
    if (message.role === 'tool') return messages[index - 1]?.role !== 'assistant';
    const next = messages[index + 1];
    const asked = message.role === 'assistant' ? toolUsesOf(message).map(({ id }) => id) : [];
    const answered = next?.role === 'tool' ? next.content.map((it) => it.toolUseId) : [];
    return asked.length !== answered.length || asked.some((id, at) => id !== answered[at]);
  });
  return fault === undefined
    ? undefined
    : `a tool use without its one result, or a result without its use (at the message '${fault.id}')`;
};

/** Refuses messages in which a tool use and its result are not together. */
export const assertPaired = (messages: readonly Message[]): void => {
  const fault = unpaired(messages);
  if (fault === undefined) return;
  throw new MillraceError(
    'invalidState',
    `The run holds ${fault}. A phase must add an assistant message and its tool message together.`,
  );
};

/** How far the loop of a call has come, for what follows if it fails. */
export const progress = cell('call', (): Progress => ({}));

interface Progress {
  /** As the last turn, or its tools, left it. */
  run?: Run;
  /** The tool calls under way, with the results that are there. */
  acting?: { readonly asked: AssistantMessage; readonly results: ToolResultBlock[] } | undefined;
}

/** What has become of a call, for the layers around it. */
export const outcome = cell('call', (): Outcome => ({}));

interface Outcome {
  /** What is done if the call fails, such as storing what it leaves. Never errors. */
  failed$?: ((error: unknown) => Observable<never>) | undefined;
  /** What was asked, until `preCall` has reported it. */
  input?: readonly Message[] | undefined;
  /** How the loop has ended. */
  run?: EndedRun;
  /** Whether memory has the call. */
  isRemembered?: boolean;
}

/** Does what is to be done about a failed call, once. */
export const failed$ = ({ local }: { readonly local: Locals }, error: unknown): Observable<never> =>
  defer(() => {
    const end = local(outcome);
    const { failed$: then } = end;
    end.failed$ = undefined;
    return then?.(error) ?? EMPTY;
  });

/** Reports `preCall`, unless it was reported before. */
export const reportBeginning = ({
  hooks,
  local,
}: {
  readonly hooks: {
    report(iteration: number, event: { type: 'preCall'; input: readonly Message[] }): void;
  };
  readonly local: Locals;
}): void => {
  const state = local(outcome);
  const { input } = state;
  state.input = undefined;
  if (input !== undefined) hooks.report(0, { type: 'preCall', input });
};
