import type { Observable } from 'rxjs';
import type { ReportedPayload } from '../events.js';
import type { Memory } from '../values/memory.js';
import { isBesideQuestion, type Message, textOf } from '../values/message.js';
import type { Limits } from '../flow/deadline.js';
import type { Model, RequestOptions } from '../models/model.js';
import type { PreparedOptions } from './preparation.js';
import type { Reply } from '../values/reply.js';
import type { Notes } from '../run.js';
import { cell } from '../step.js';
import type { JsonSchema, Validation } from '../values/schema.js';
import type { ContextValues } from '../tools/context-key.js';
import { hiding, type ToolkitCell } from '../tools/toolkit.js';
import { addToPhase, type Usage, type UsageByPhase } from '../values/usage.js';

/** The required form of the answer, if a layer sets one. */
export const answerForm = cell('call', (): { required?: AnswerForm } => ({}));

export interface AnswerForm {
  readonly jsonSchema: JsonSchema;
  /** Parses and validates the text of an answer. Emits one result and completes. */
  readonly read$: (text: string) => Observable<Validation>;
  /** Wraps the model so that it takes the schema. */
  readonly ready: (model: Model) => Model;
}

/** A call before its loop runs. Layers edit it by the functions below; afterwards it never changes. */
export interface Call {
  /** `interrupted`: before it started. `vetoed`: by an interceptor of `prepare`. */
  readonly status: 'prepared' | 'interrupted' | 'vetoed';
  /** The input. The layer that opens the call takes out results for tool calls of earlier calls. */
  readonly input: readonly Message[];
  /** Absent for an agent made of steps. */
  readonly model: Model | undefined;
  readonly toolkit: ToolkitCell;
  /** The options, without the model and the tools. */
  readonly options: Omit<PreparedOptions, 'model' | 'tools'>;
  /** The memory of the call's messages. */
  readonly memory: Memory;
  /** The earlier conversation, including results that arrived since. Before the call opens: the messages of the caller before the input. */
  readonly history: readonly Message[];
  /** In a memory with branches: the id of the last stored message of the history. New messages come after it. */
  readonly after?: string | null;
  /** Messages to store first: these results, and earlier messages that memory lacks. */
  readonly late: readonly Message[];
  readonly instructions: string | undefined;
  readonly createdAt: number;
  /** Values of context keys. */
  readonly values: ContextValues;
  /** Messages from earlier conversations: shown, and never stored. */
  readonly recalled: readonly Message[];
  /** Their place in a request; `beforeInput` if findings are placed there. */
  readonly recalledPlacement: 'beforeHistory' | 'beforeInput';
  readonly found: Findings;
  /** The stand-alone form of a question that refers to earlier messages, for searching passages, tools and memories. */
  readonly question: string | undefined;
  /** Notes in every request, by title. */
  readonly notes: Notes;
  /** The usage before the loop, by phase. */
  readonly spent: UsageByPhase;
}

/** A call that the loop answers: with what its requests and tool calls need. */
export interface LoopCall extends Call {
  /** The model, wrapped for the required form of the answer, with its timeouts. */
  readonly model: Model;
  readonly limits: Limits;
  /** Options of every request, without messages and tools. */
  readonly request: RequestOptions;
}

/** The tools of the loop of a call. */
export const loopToolkit = cell('call', (): { own?: ToolkitCell } => ({}));

/** Adds messages to every request, before the history, or before the input like findings. They are never stored. */
export const recall = (call: Call, ...messages: readonly Message[]): Call => ({
  ...call,
  recalled: [...call.recalled, ...messages],
});

/** As `recall`, but places all recalled messages right before the input: providers can then cache the history. */
export const recallBeforeInput = (call: Call, ...messages: readonly Message[]): Call => ({
  ...recall(call, ...messages),
  recalledPlacement: 'beforeInput',
});

/** Adds a note to every request, under a title. It is never stored. */
export const addNote = (call: Call, title: string, text: string): Call => ({
  ...call,
  notes: { ...call.notes, [title]: text },
});

/** Sets the stand-alone form of the question. */
export const withQuestion = (call: Call, question: string): Call => ({ ...call, question });

/** Adds usage before the loop to a phase. */
export const charge = (call: Call, phase: string, usage: Usage): Call => ({
  ...call,
  spent: addToPhase(call.spent, phase, usage),
});

/** Hides tools from the model. */
export const hideTools = (call: Call, ...names: readonly string[]): Call =>
  names.length === 0 ? call : { ...call, toolkit: hiding(call.toolkit, names) };

/** Whether the call runs: it was neither interrupted before it started nor vetoed. */
export const isOpen = ({ status }: Pick<Call, 'status'>): boolean => status === 'prepared';

/** The question as text, in its stand-alone form if there is one. If a call only brings results: the last one. */
export const questionOf = ({
  input,
  history,
  question,
}: Pick<Call, 'input' | 'history' | 'question'>): string => {
  if (question !== undefined) return question;
  const text = askedText(input);
  const last = history.findLast(isOfUser);
  return text === '' && last !== undefined ? textOf(last) : text;
};

/** The text of the user in an input. */
export const askedText = (input: Call['input']): string =>
  input.filter(isOfUser).map(textOf).join('\n');

const isOfUser = (message: Message): boolean =>
  message.role === 'user' && !isBesideQuestion(message);

/** Information that a layer found for a call. */
export interface Finding {
  /** The text under `[Retrieved Context]` in every request; may be empty. */
  readonly text: string;
  /** In the system prompt, or right before the input and after recalled messages, so that the prefix can be cached. */
  readonly placement: 'system' | 'beforeInput';
  /** Reported when the loop starts. */
  readonly event?: ReportedPayload;
  /** Fields of the reply. */
  readonly reply?: Partial<Reply>;
}

export type Findings = Readonly<Record<string, Finding>>;
