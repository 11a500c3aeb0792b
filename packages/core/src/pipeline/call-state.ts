import type { CallPlan } from '../call-plan.js';
import type { Memory } from '../memory.js';
import type { ContentBlock, Message, ToolMessage } from '../message.js';
import type { Reply } from '../reply.js';
import type { RetrievedPassage } from '../retrieval/retriever.js';
import type { EndedRun, Notes } from '../run.js';
import { addToPhase, type Usage, type UsageByPhase } from '../usage.js';

/** A call on its way: what it begins with, what has been found for it, and what came of it. Stages change it by named transitions. */
export interface CallState {
  readonly plan: CallPlan;
  /** Whether the call is to run: an interrupt may have come before it began, or an interceptor would not have it. */
  readonly status: 'prepared' | 'interrupted' | 'vetoed';
  /** What was asked, without the results that it brings. */
  readonly input: readonly Message[];
  /** Results that it brings for tools that wait. */
  readonly results: ToolMessage | undefined;
  readonly memory: Memory;
  /** What memory holds, with results that came since in their places. */
  readonly history: readonly Message[];
  /** These results, as memory is to have them. */
  readonly late: readonly Message[];
  /** What the agent tells the model in every request. */
  readonly instructions: string | undefined;
  /** When it began, in milliseconds since the epoch. */
  readonly createdAt: number;
  /** What is remembered of earlier sessions: shown, and never stored. */
  readonly recalled: readonly Message[];
  /** Where the model reads that; right before what was asked, too, where `contextPlacement` says so. */
  readonly recalledPlacement: 'beforeHistory' | 'beforeInput';
  /** What has been found for it, in the order of the numbers that the model cites. */
  readonly sources: readonly RetrievedPassage[];
  /** How often something has been looked for. */
  readonly retrievals: number;
  /** Where the model reads that. */
  readonly contextPlacement: ContextPlacement;
  /** What was asked, as it is meant, where it refers to what was said before. What is looked for goes by it. */
  readonly question: string | undefined;
  /** What every request tells the model beside what was said, by title. */
  readonly notes: Notes;
  /** What has been spent before the loop, by what it was for. */
  readonly spent: UsageByPhase;
  /** The names of tools that the model is not shown. */
  readonly hidden: readonly string[];
  /** An answer that no model needs to be asked for. */
  readonly answer: string | readonly ContentBlock[] | undefined;
  /** The loop behind its end. */
  readonly run: EndedRun | undefined;
  /** The reply, as interceptors have left it. */
  readonly reply: Reply | undefined;
}

/**
 * Where found context stands: in the system prompt, or right before what was asked, and behind what is recalled, so that all before these is the same from call to
 * call.
 */
export type ContextPlacement = 'system' | 'beforeInput';

/** Adds passages to those that have been found. */
export const addSources = (
  state: CallState,
  sources: readonly RetrievedPassage[],
  contextPlacement: ContextPlacement = state.contextPlacement,
): CallState => ({
  ...state,
  sources: [...state.sources, ...sources],
  retrievals: state.retrievals + 1,
  contextPlacement,
});

/** Adds messages that every request shows before the history, unless what is found stands right before what was asked: then these do, too. They are never stored. */
export const recall = (state: CallState, ...messages: readonly Message[]): CallState => ({
  ...state,
  recalled: [...state.recalled, ...messages],
});

/**
 * Adds messages that every request shows, and has all that is recalled stand right before what was asked: what changes from call to call stands behind
 * the history then, which providers can cache.
 */
export const recallBeforeInput = (
  state: CallState,
  ...messages: readonly Message[]
): CallState => ({
  ...recall(state, ...messages),
  recalledPlacement: 'beforeInput',
});

/** Puts another history in the place of the one that memory gave. */
export const withHistory = (state: CallState, history: readonly Message[]): CallState => ({
  ...state,
  history,
});

/** Tells the model something in every request, under a title. It is never stored. */
export const addNote = (state: CallState, title: string, text: string): CallState => ({
  ...state,
  notes: { ...state.notes, [title]: text },
});

/** Says how what was asked is meant, so that it can be understood without what was said before. */
export const withQuestion = (state: CallState, question: string): CallState => ({
  ...state,
  question,
});

/** Adds what was spent before the loop, and what for. */
export const charge = (state: CallState, phase: string, usage: Usage): CallState => ({
  ...state,
  spent: addToPhase(state.spent, phase, usage),
});

/** Hides tools from the model. */
export const hideTools = (state: CallState, ...names: readonly string[]): CallState => ({
  ...state,
  hidden: [...new Set([...state.hidden, ...names])],
});

/** Answers the call without a model, as from a cache: the loop is passed over, all else happens as ever. An `output` is read from it, as from any answer. */
export const answerWith = (
  state: CallState,
  answer: string | readonly ContentBlock[],
): CallState => ({
  ...state,
  answer,
});

/** Tells whether the call is to run: it is neither interrupted nor vetoed, and nothing has answered it. */
export const isOpen = ({ status, answer, run }: CallState): boolean =>
  status === 'prepared' && answer === undefined && run === undefined;
