import type { AnyRun, CallLabels, Reply, ToolRun } from './values/reply.js';
import type { MillraceError } from './values/errors.js';
import type {
  AssistantMessage,
  Citation,
  ContentBlock,
  Finish,
  Message,
  ResultSource,
  TextPhase,
  ToolCallBlock,
  ToolResultBlock,
  VendorBlock,
} from './values/message.js';
import type { ModelReport, RequestOptions } from './models/model.js';
import type { Usage } from './values/usage.js';

/** The origin of an event. Every event has these fields. */
export interface Envelope extends CallLabels {
  /** The id of the outermost call, shared by all sub-agents below it. */
  readonly rootId: string;
  readonly callId: string;
  /** The id of the call whose tool made this one. */
  readonly parentId?: string;
  /** The names of the agents, from the outermost to the one that emits the event. */
  readonly agent: readonly string[];
  /** This call speaks for its parent: its text is part of the root's answer. */
  readonly speaks?: true;
  /** The turn of the loop, from 1; 0 before the first. */
  readonly iteration: number;
  /** Strictly increasing within a root call, sub-agents included. Assigned on delivery: interceptors see 0. */
  readonly seq: number;
  /** Milliseconds since the epoch, by the call's scheduler. */
  readonly at: number;
}

/** One change of a state, as immer emits it: a JSON Patch operation whose path is a list. */
export interface StatePatch {
  readonly op: 'add' | 'remove' | 'replace';
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}

/** A model request before it is sent. An edit affects this request only. */
export interface BeforeModel {
  readonly messages: readonly Message[];
  readonly options: RequestOptions;
}

/** A delta of the message `messageId`, as the model produced it. */
export interface ChunkOf {
  readonly messageId: string;
  /**
   * `toolInput` deltas are parts of a tool's arguments; `postReasoning` has them complete. A `citation` or a whole `block`
   * has an empty delta.
   */
  readonly kind: 'text' | 'thinking' | 'toolInput' | 'citation' | 'block';
  readonly delta: string;
  /** Whether a `text` delta comments on the work or is the answer, if the model distinguishes them. */
  readonly textPhase?: TextPhase;
  /** A source of the text so far. */
  readonly citation?: Citation;
  /** Media, or a part of the answer that only the vendor understands. */
  readonly block?: ContentBlock | VendorBlock;
  /** The tool call that a `toolInput` delta belongs to. */
  readonly toolCall?: { readonly index: number; readonly id: string; readonly name: string };
}

/** The event of a delta, without the delta. */
export type Chunk = WithoutDelta<Extract<ModifiablePayload | ReportedPayload, ChunkOf>>;
type WithoutDelta<Event> = Event extends ChunkOf ? Omit<Event, keyof ChunkOf> : never;

/** Whether a chunk is a delta, which others may continue. Citations and blocks are whole. */
export const isGrowing = ({ kind }: Pick<ChunkOf, 'kind'>): boolean =>
  kind !== 'citation' && kind !== 'block';

/** A model message. An edit affects execution and memory. */
export interface AfterModel {
  readonly message: AssistantMessage;
  readonly finish: Finish;
  readonly usage: Usage;
}

/** A model request beside the loop, for example to reflect. A veto skips this request. */
export interface OfPhase {
  /** The phase that asks, such as `analyseTask`. */
  readonly phase: string;
}

/** The events that an interceptor may change, delay or veto. */
export type ModifiablePayload =
  | {
      readonly type: 'preCall';
      /** The messages of the input. An edit or a veto affects subscribers only: `prepare` changes the call. */
      readonly input: readonly Message[];
    }
  | ({ readonly type: 'preReasoning' } & BeforeModel)
  | ({
      readonly type: 'postReasoning';
      /** Set it to end the call here with reason `stopped`; tool calls of the message do not run. */
      readonly stop?: boolean;
      /** Set it to discard the message and ask again with this feedback, which counts as an iteration. */
      readonly again?: string;
    } & AfterModel)
  | { readonly type: 'preActing'; readonly toolCall: ToolCallBlock }
  | {
      readonly type: 'actingChunk';
      readonly toolCall: ToolCallBlock;
      /** The progress value of the tool. An edit or a veto affects subscribers, not the result. */
      readonly value: unknown;
    }
  | {
      readonly type: 'postActing';
      readonly toolCall: ToolCallBlock;
      readonly result: ToolResultBlock;
      /** The duration of the tool call, in milliseconds. */
      readonly ms: number;
      /** The error that the tool threw or returned. Not enumerable, and not in a journal: copies do not have it. */
      readonly error?: Error;
      /** The result is the answer: the call ends with reason `toolFinal`. */
      readonly finalAnswer?: boolean;
      /** Set it to end the call after this batch of tool calls, with reason `stopped`. */
      readonly stop?: boolean;
    }
  | ({ readonly type: 'preSummary' } & BeforeModel)
  /** An edit or a veto affects subscribers only; `transformChunks` changes the message. */
  | ({ readonly type: 'summaryChunk' } & ChunkOf)
  | ({ readonly type: 'postSummary' } & AfterModel)
  | ({ readonly type: 'prePlanning' } & OfPhase & BeforeModel)
  /** As `summaryChunk`. */
  | ({ readonly type: 'planningChunk' } & OfPhase & ChunkOf)
  | ({ readonly type: 'postPlanning' } & OfPhase & AfterModel)
  | { readonly type: 'postCall'; readonly reply: Reply };

/** The notification events, by type. Features add their own by declaration merging, so the union is open. */
export interface Events {
  readonly reasoningChunk: ChunkOf;
  readonly messageDiscarded: { readonly messageId: string; readonly why: string };
  readonly vetoed: {
    /** The vetoed event type, or `prepare` if the call was vetoed before it started. */
    readonly of: ModifiableType | 'prepare';
    readonly name: string;
    /** For `preActing` and `postActing`: the id of the tool call. */
    readonly toolCallId?: string;
  };
  readonly handlerError: {
    /** The event type of an interceptor, or the name of an option. */
    readonly of: string;
    readonly name: string;
    readonly error: MillraceError;
  };
  readonly inputEdited: {
    /** The tool call before the edit. */
    readonly from: ToolCallBlock;
    /** The tool call after the edit. Deciders that saw another input are asked again. */
    readonly to: ToolCallBlock;
    /** The name of the interceptor or the approver. */
    readonly by: string;
  };
  readonly suspended: {
    /** The tool call whose result arrives later. */
    readonly toolCall: ToolCallBlock;
    readonly request: unknown;
    /** Who may bring the result. */
    readonly from: ResultSource;
  };
  readonly messagesAppended: {
    /** The messages added to memory, as stored. A message with a known id is not added again. */
    readonly messages: readonly Message[];
    /** In a memory with branches: the id of the message that they come after; `null` at the beginning. */
    readonly after?: string | null;
  };
  /** The conversation is continued on another branch. */
  readonly headMoved: {
    /** The ids of its last messages; `null` if it was, or is, empty. */
    readonly from: string | null;
    readonly to: string | null;
  };
  readonly messagesRemoved: {
    /** The ids of messages that memory dropped. */
    readonly ids: readonly string[];
  };
  readonly stateChanged: {
    /** The name of the state, such as `plan` or `groups`. */
    readonly name: string;
    readonly state: unknown;
    /** The changes from the previous value. */
    readonly patches: readonly StatePatch[];
  };
  readonly uncertain: {
    /** The tool call that was running when the process ended: its outcome is unknown. */
    readonly toolCall: ToolCallBlock;
    /** The consequence: the tool runs again, the call suspends to ask a person, or the model is informed. */
    readonly then: 'rerun' | 'ask' | 'report';
  };
  readonly error: { readonly error: MillraceError };
}

/** The events that interceptors cannot change. */
export type ReportedPayload =
  { [Type in keyof Events]: { readonly type: Type } & Events[Type] }[keyof Events] | ModelReport;

/**
 * An event of a call. Those of `stream$` are typed by the tools of the agent: the name of a `toolCall` narrows its `input`. Tool calls
 * of sub-agents, and of tools that layers or the call add, are not in the type. A model may have written anything until the
 * arguments are checked: in `preActing`, and in `postActing` if `result.isError`.
 */
export type AgentEvent<Run extends AnyRun = AnyRun> =
  EventWithoutCall | (EventWithCall & { readonly toolCall: ToolCallOf<Run> });

// Computed once, not for each agent.
type Payload = ModifiablePayload | ReportedPayload;
type PayloadWithCall = Extract<Payload, { readonly toolCall: ToolCallBlock }>;
type EventWithoutCall = Exclude<Payload, PayloadWithCall> & Envelope;
type EventWithCall = WithoutCall<PayloadWithCall> & Envelope;
type WithoutCall<Of> = Of extends unknown ? Omit<Of, 'toolCall'> : never;

type ToolCallOf<Run extends AnyRun> =
  Run extends ToolRun<infer Name, infer Given>
    ? string extends Name
      ? ToolCallBlock
      : TypedToolCall<Name, Given>
    : never;

interface TypedToolCall<Name, Given> extends Omit<ToolCallBlock, 'name' | 'input'> {
  readonly name: Name;
  readonly input: Given extends ToolCallBlock['input'] ? Given : Given & ToolCallBlock['input'];
}

export interface Listener {
  /** Whether it has observers: an event without observers is not created. */
  hears(): boolean;
  /** Its subscribers belong to no call. */
  readonly isShared?: true;
  /** `report` reports an event of the same call, after its end to the listeners of its agents only. */
  next(event: AgentEvent, report: (payload: ReportedPayload) => void): void;
}

export type ModifiableEvent = ModifiablePayload & Envelope;

export type EventType = AgentEvent['type'];
export type ModifiableType = ModifiablePayload['type'];

export type EventOf<Type extends EventType> = Extract<AgentEvent, { readonly type: Type }>;

/** The events of a type, of an agent with tools. Cheaper than a selection among all events. */
export type TypedEventOf<Type extends EventType, Run extends AnyRun> =
  | Extract<EventWithoutCall, { readonly type: Type }>
  | (Extract<EventWithCall, { readonly type: Type }> & { readonly toolCall: ToolCallOf<Run> });

export const modifiableTypes: readonly ModifiableType[] = [
  'preCall',
  'preReasoning',
  'postReasoning',
  'preActing',
  'actingChunk',
  'postActing',
  'preSummary',
  'summaryChunk',
  'postSummary',
  'prePlanning',
  'planningChunk',
  'postPlanning',
  'postCall',
];

/** Adds the error of a tool to its event. It may hold secrets, so nothing that copies or writes the event gets it. */
export const withError = <Event extends object>(event: Event, error: unknown): Event =>
  error === undefined
    ? event
    : Object.defineProperty(event, 'error', { value: error, enumerable: false });

/** Whether an event is of one of these types. */
export const isEvent = <Type extends EventType>(
  event: AgentEvent,
  ...types: readonly Type[]
): event is EventOf<Type> => types.some((type) => type === event.type);
