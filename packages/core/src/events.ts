import type { CallLabels, Reply } from './values/reply.js';
import type { MillraceError } from './values/errors.js';
import type {
  AssistantMessage,
  Finish,
  Message,
  ToolResultBlock,
  ToolUseBlock,
} from './values/message.js';
import type { ModelReport, RequestOptions } from './models/model.js';
import type { Usage } from './values/usage.js';

/** Where an event comes from. Every event carries it. */
export interface Envelope extends CallLabels {
  /** The outermost call: the same for a call and all sub-agents below it. */
  readonly rootId: string;
  readonly callId: string;
  /** The call whose tool made this one. */
  readonly parentId?: string;
  /** The names of the agents, from the outermost to the one that speaks. */
  readonly agent: readonly string[];
  /** What a call below says is what the call above it says: its text is a part of the root's answer. */
  readonly speaks?: true;
  /** Which turn of the loop, from 1; 0 before the first. */
  readonly iteration: number;
  /** Strictly increasing over a root call, sub-agents included. An interceptor sees 0: it is given on delivery. */
  readonly seq: number;
  /** Milliseconds since the epoch, by the call's scheduler. */
  readonly at: number;
}

/** One step from a state to the next, as immer writes it: a JSON Patch whose path is a list. */
export interface StatePatch {
  readonly op: 'add' | 'remove' | 'replace';
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}

/** What the model is about to be asked. An edit shapes this one request only. */
export interface BeforeModel {
  readonly messages: readonly Message[];
  readonly options: RequestOptions;
}

/** A delta of the message `messageId`, as the model produced it. */
export interface ChunkOf {
  readonly messageId: string;
  /** `toolInput` deltas are the text of a tool's arguments; they are whole only in `postReasoning`. */
  readonly kind: 'text' | 'thinking' | 'toolInput';
  readonly delta: string;
  /** The tool use that a `toolInput` delta belongs to. */
  readonly toolUse?: { readonly index: number; readonly id: string; readonly name: string };
}

/** What the model answered. An edit reaches execution and memory. */
export interface AfterModel {
  readonly message: AssistantMessage;
  readonly finish: Finish;
  readonly usage: Usage;
}

/** What the model is asked beside the loop, such as to reflect. A veto leaves that one request out. */
export interface OfPhase {
  /** What asks, such as `analyseTask`. */
  readonly phase: string;
}

/** The events that an interceptor may change, delay or veto. */
export type ModifiablePayload =
  | ({ readonly type: 'preReasoning' } & BeforeModel)
  | ({
      readonly type: 'postReasoning';
      /** Set it to end the call here, with reason `stopped`; tools asked for are not run. */
      readonly stop?: boolean;
      /** Set it to discard the message and ask again, with this feedback: one more counted iteration. */
      readonly again?: string;
    } & AfterModel)
  | { readonly type: 'preActing'; readonly toolUse: ToolUseBlock }
  | {
      readonly type: 'actingChunk';
      readonly toolUse: ToolUseBlock;
      /** What the tool emitted, as it is. An edit, or a veto, changes what subscribers receive, and not the result. */
      readonly value: unknown;
    }
  | {
      readonly type: 'postActing';
      readonly toolUse: ToolUseBlock;
      readonly result: ToolResultBlock;
      /** How long the tool took, in milliseconds. */
      readonly ms: number;
      /** The result is the answer: the call ends with it, with reason `toolFinal`. */
      readonly finalAnswer?: boolean;
      /** Set it to end the call after this batch of tools, with reason `stopped`. */
      readonly stop?: boolean;
    }
  | ({ readonly type: 'preSummary' } & BeforeModel)
  | ({ readonly type: 'postSummary' } & AfterModel)
  | ({ readonly type: 'prePlanning' } & OfPhase & BeforeModel)
  | ({ readonly type: 'postPlanning' } & OfPhase & AfterModel)
  | { readonly type: 'postCall'; readonly reply: Reply };

/** The events that only say what happened, by type. A feature declares its own by merging into it, so there may be more than these. */
export interface Events {
  readonly preCall: { readonly input: readonly Message[] };
  readonly reasoningChunk: ChunkOf;
  readonly summaryChunk: ChunkOf;
  readonly planningChunk: OfPhase & ChunkOf;
  readonly messageDiscarded: { readonly messageId: string; readonly why: string };
  readonly vetoed: {
    /** What was vetoed: an event of this type, or the call before it began. */
    readonly of: ModifiableType | 'prepare';
    /** The interceptor that vetoed it. */
    readonly name: string;
    /** Of `preActing` and `postActing`: the use of a tool that it was about. */
    readonly toolUseId?: string;
  };
  readonly handlerError: {
    /** The handler: the event type of an interceptor, or the name of an option. */
    readonly of: string;
    readonly name: string;
    readonly error: MillraceError;
  };
  readonly suspended: {
    /** Its result comes later. */
    readonly toolUse: ToolUseBlock;
    /** What the tool asks for. */
    readonly request: unknown;
  };
  readonly messagesAppended: {
    /** The messages that were added to memory, as it keeps them. A message with a known id is kept once. */
    readonly messages: readonly Message[];
  };
  readonly messagesRemoved: {
    /** The messages that memory has dropped. */
    readonly ids: readonly string[];
  };
  readonly stateChanged: {
    /** What changed, such as `plan` or `groups`. */
    readonly name: string;
    /** The new value. */
    readonly state: unknown;
    /** How it differs from the value before. */
    readonly patches: readonly StatePatch[];
  };
  readonly uncertain: {
    /** It was running when the process ended, and its outcome is unknown. */
    readonly toolUse: ToolUseBlock;
    /** What happens next: it runs again, the call suspends to ask a person, or the model is informed. */
    readonly then: 'rerun' | 'ask' | 'report';
  };
  readonly error: { readonly error: MillraceError };
}

/** The events that only say what happened. */
export type ReportedPayload =
  { [Type in keyof Events]: { readonly type: Type } & Events[Type] }[keyof Events] | ModelReport;

/** Everything that can happen during a call. */
export type AgentEvent = (ModifiablePayload | ReportedPayload) & Envelope;

/** Who may hear of events. */
export interface Listener {
  /** Whether anybody listens: an event that nobody hears is not made. */
  readonly hears: boolean;
  next(event: AgentEvent): void;
}

/** An event that an interceptor may change. */
export type ModifiableEvent = ModifiablePayload & Envelope;

export type EventType = AgentEvent['type'];
export type ModifiableType = ModifiablePayload['type'];

/** The event of one type, or of several. */
export type EventOf<Type extends EventType> = Extract<AgentEvent, { readonly type: Type }>;

export const modifiableTypes: readonly ModifiableType[] = [
  'preReasoning',
  'postReasoning',
  'preActing',
  'actingChunk',
  'postActing',
  'preSummary',
  'postSummary',
  'prePlanning',
  'postPlanning',
  'postCall',
];

/** Tells whether an event is of one of these types. */
export const isEvent = <Type extends EventType>(
  event: AgentEvent,
  ...types: readonly Type[]
): event is EventOf<Type> => types.some((type) => type === event.type);
