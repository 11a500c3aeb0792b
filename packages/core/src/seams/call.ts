import type { Observable } from 'rxjs';
import type { ReportedPayload } from '../events.js';
import type { Memory } from '../values/memory.js';
import { type Message, textOf } from '../values/message.js';
import type { Model } from '../models/model.js';
import type { PreparedOptions } from './preparation.js';
import type { Reply } from '../values/reply.js';
import type { Notes } from '../run.js';
import type { JsonSchema, Validation } from '../values/schema.js';
import type { ToolkitCell } from '../tools/toolkit.js';
import { addToPhase, type Usage, type UsageByPhase } from '../values/usage.js';

/** What an answer must be. */
export interface AnswerForm {
  readonly jsonSchema: JsonSchema;
  /** Reads the output in the text of an answer. Emits one verdict and completes. */
  readonly read$: (text: string) => Observable<Validation>;
  /** Readies a model for requests that ask for this form. */
  readonly ready: (model: Model) => Model;
}

/** One call on its way in. Layers edit it by named transitions before its loop runs; it never changes afterwards. */
export interface Call {
  /** Whether the call is to run: it may have been interrupted before it began, or an interceptor of `prepare` may have vetoed it. */
  readonly status: 'prepared' | 'interrupted' | 'vetoed';
  /** What was asked. The layer that opens the call takes out the results that it brings for tools of earlier calls. */
  readonly input: readonly Message[];
  /** An agent made of steps has none. */
  readonly model: Model | undefined;
  /** The tools, as they are just now. */
  readonly toolkit: ToolkitCell;
  /** The names of tools that are shown whatever is selected. */
  readonly pinned: readonly string[];
  /** The names of tools that the model is not shown. */
  readonly hidden: readonly string[];
  /** Its requests, limits and time-outs, without the model and the tools. */
  readonly options: Omit<PreparedOptions, 'model' | 'tools'>;
  /** What the answer must be, if it must be something. */
  readonly output: AnswerForm | undefined;
  /** Where the messages of the call are kept. */
  readonly memory: Memory;
  /** What was said before, with results that came since in their places. */
  readonly history: readonly Message[];
  /** What memory is to have first: these results, and before them what it lacks of what was said before. */
  readonly late: readonly Message[];
  /** What the agent tells the model in every request. */
  readonly instructions: string | undefined;
  /** When it began, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** What is remembered of earlier conversations: shown, and never stored. */
  readonly recalled: readonly Message[];
  /** Where the model reads that; also right before the input if something that was found stands there. */
  readonly recalledPlacement: 'beforeHistory' | 'beforeInput';
  /** What layers have found for it, by name. */
  readonly found: Findings;
  /** The stand-alone form of the question, if it refers to what was said before. Passages, tools and memories are searched by it. */
  readonly question: string | undefined;
  /** What every request tells the model beside the messages, by title. */
  readonly notes: Notes;
  /** What has been spent before the loop, by phase. */
  readonly spent: UsageByPhase;
}

/** Adds messages that every request shows before the history, or before the input if something that was found stands there. They are never stored. */
export const recall = (call: Call, ...messages: readonly Message[]): Call => ({
  ...call,
  recalled: [...call.recalled, ...messages],
});

/** Adds messages that every request shows, and puts everything recalled right before the input: what changes from call to call then stands after the history, which providers can cache. */
export const recallBeforeInput = (call: Call, ...messages: readonly Message[]): Call => ({
  ...recall(call, ...messages),
  recalledPlacement: 'beforeInput',
});

/** Replaces the history that memory gave. */
export const withHistory = (call: Call, history: readonly Message[]): Call => ({
  ...call,
  history,
});

/** Tells the model something in every request, under a title. It is never stored. */
export const addNote = (call: Call, title: string, text: string): Call => ({
  ...call,
  notes: { ...call.notes, [title]: text },
});

/** Sets the stand-alone form of the question. */
export const withQuestion = (call: Call, question: string): Call => ({ ...call, question });

/** Adds what was spent before the loop, under the name of a phase. */
export const charge = (call: Call, phase: string, usage: Usage): Call => ({
  ...call,
  spent: addToPhase(call.spent, phase, usage),
});

/** Hides tools from the model. */
export const hideTools = (call: Call, ...names: readonly string[]): Call => ({
  ...call,
  hidden: [...new Set([...call.hidden, ...names])],
});

/** Whether the call is to run: it was neither interrupted before it began nor vetoed. */
export const isOpen = ({ status }: Pick<Call, 'status'>): boolean => status === 'prepared';

/** The text of the question, in its stand-alone form if there is one. If a call brings results and no words, it is what was asked last. */
export const questionOf = ({
  input,
  history,
  question,
}: Pick<Call, 'input' | 'history' | 'question'>): string => {
  if (question !== undefined) return question;
  const said = input.map(textOf).join('\n');
  const asked = history.findLast(({ role }: Message) => role === 'user');
  return said === '' && asked !== undefined ? textOf(asked) : said;
};

/** Something that was found for a call. */
export interface Finding {
  /** What every request shows of it under `[Retrieved Context]`, if anything. */
  readonly text: string;
  /** Where: in the system prompt, or right before the input and after what is recalled, so that everything before these is the same from call to call. */
  readonly placement: 'system' | 'beforeInput';
  /** Reported when the loop begins. */
  readonly event?: ReportedPayload;
  /** What the reply has of it. */
  readonly reply?: Partial<Reply>;
}

/** What layers have found, by name. */
export type Findings = Readonly<Record<string, Finding>>;
