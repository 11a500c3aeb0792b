// The protocol between the server of the devtools and its page. Both import this file, so they always match.
import type { AgentEvent, EventOf } from 'millrace';

/** An event as JSON shows it: errors are objects, and what JSON cannot express is left out. */
export type ShownEvent = AgentEvent & Readonly<Record<string, unknown>>;

/** A call without its log, for the list. */
export interface CallEntry {
  /** The id of the root call. */
  readonly id: string;
  readonly agent: string;
  /** The text of its input, cut to 200 characters. */
  readonly input: string;
  /** The text of its answer, cut to 200 characters. Empty until then. */
  readonly answer: string;
  /** `held`: at a breakpoint. `stopped`: its process has ended, and it can be resumed. */
  readonly status: 'running' | 'held' | 'suspended' | 'done' | 'failed' | 'stopped';
  /** Why it ended: the reason of the reply, or the code of the error. */
  readonly reason?: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly tokens: number;
  /** How many results of tools are errors, with those of sub-agents; absent without one. */
  readonly failedTools?: number;
  /** Its cost, such as `0.0015 USD`, with the layer `cost`. */
  readonly cost?: string;
  readonly sessionId?: string;
  /** The `userId` of its metadata. */
  readonly userId?: string;
  readonly forkedFrom?: { readonly callId: string; readonly at: string };
  /** Whether the page has its log. Otherwise it asks for it with `GET calls/{id}`. */
  readonly isOpen: boolean;
  /** Why it cannot be forked; absent if it can. */
  readonly unforkable?: string;
  /** Whether it was inspected from its start: only then are there marks. */
  readonly isInspected: boolean;
}

/** A request to a model. The feed has each message of a log once: `ranges` are those of the request in their list. */
export type BeforeModel = Pick<EventOf<'preReasoning'>, 'messages' | 'options'>;

/** An observation of the inspecting layers, beside the events. `at` is the time of the call's clock, in milliseconds. */
export type Mark = { readonly at: number; readonly callId: string } & (
  | {
      /** A subscription to a step: a model message, a decision on a tool call, a tool run, a wait, a step of a layer. */
      readonly mark: 'step';
      readonly id: string;
      readonly kind: string;
      /** `cut`: it ended early, with a partial value. `cancelled`: it was unsubscribed. */
      readonly phase: 'started' | 'ended' | 'failed' | 'cut' | 'cancelled';
    }
  | {
      /** A subscription to a model: a request, with its retries and fallbacks, which events show. */
      readonly mark: 'request';
      /** Unique in the log. */
      readonly id: string;
      /** The id of the message, as in chunks. */
      readonly messageId: string;
      readonly model: string;
      readonly phase: 'started' | 'ended' | 'failed' | 'cancelled';
      /** The request as the model got it, if layers have changed it after its interceptors. */
      readonly sent?: BeforeModel;
    }
  /** The demand of the consumers: while it is closed, sources pause. */
  | { readonly mark: 'demand'; readonly isOpen: boolean }
  | {
      /** An event passes the interceptors of its type. */
      readonly mark: 'interceptors';
      readonly of: string;
      /** Unique in the log. */
      readonly id: string;
      /** The names of the interceptors. */
      readonly names: readonly string[];
      readonly toolCallId?: string;
      /** `vetoed`: an interceptor dropped it. */
      readonly phase: 'started' | 'ended' | 'vetoed' | 'failed' | 'cancelled';
      /** Whether it came out as another value. */
      readonly isEdited?: boolean;
    }
  | {
      /** A breakpoint holds the call, or lets it go. The clock of the call stands still meanwhile. */
      readonly mark: 'hold';
      readonly id: string;
      readonly of: string;
      readonly phase: 'held' | 'continued' | 'edited' | 'vetoed' | 'cancelled';
      /** How long it was held, in milliseconds of this machine. */
      readonly heldMs?: number;
    }
);

/** Deltas of one message that came in a row. They have no `seq` of their own here: `seq` is that of the first. */
export interface ChunkRun {
  readonly chunks: 'reasoningChunk' | 'summaryChunk' | 'planningChunk';
  readonly seq: number;
  readonly callId: string;
  readonly parentId?: string;
  readonly agent: readonly string[];
  readonly iteration: number;
  readonly messageId: string;
  readonly kind: 'text' | 'thinking' | 'toolInput';
  /** The tool call that a `toolInput` delta belongs to. */
  readonly toolCall?: { readonly index: number; readonly id: string; readonly name: string };
  /** Times and deltas, of the same length. */
  readonly ats: readonly number[];
  readonly deltas: readonly string[];
}

/** An entry of the log of a root call, its sub-agents included, in the order in which it was seen. */
export type LogItem = ShownEvent | Mark | ChunkRun;

/** Whether chunks of a kind are deltas. The others are whole. */
export const isDeltaKind = (kind: string): kind is ChunkRun['kind'] =>
  kind === 'text' || kind === 'thinking' || kind === 'toolInput';

export const isMark = (item: LogItem): item is Mark => 'mark' in item;

export const isChunkRun = (item: LogItem): item is ChunkRun => 'chunks' in item;

/** A call that a breakpoint holds. */
export interface Hold {
  readonly id: string;
  readonly rootId: string;
  readonly callId: string;
  readonly agent: readonly string[];
  readonly since: number;
  /** The event, which may be edited. Its `type` and its envelope stay. */
  readonly event: ShownEvent;
}

/** Holds events of this type, of any call, or only those that have the text in their JSON. */
export interface Breakpoint {
  readonly type: string;
  readonly text?: string;
}

/** The layers of an agent, outermost first, for its inspector. */
export interface LayerEntry {
  readonly name: string;
  readonly priority: number;
  /** Its parts, such as `call`, `step`, `model`, `turn`, or `on preActing`. */
  readonly parts: readonly string[];
}

/**
 * A line of `GET feed`: JSON, one line each, without end. The first line is a `hello`. Lines come in batches, up to 60
 * a second.
 */
export type FeedLine =
  | {
      readonly line: 'hello';
      readonly title: string;
      /** `agents`: this process runs them. `store`: calls are read from a store. */
      readonly source: 'agents' | 'store';
      /** The types that breakpoints can hold. None for a store. */
      readonly holdable: readonly string[];
      readonly breakpoints: readonly Breakpoint[];
      /** Of a store: how many calls it lists at first, the last written ones, and with each `POST older`. */
      readonly pageSize?: number;
    }
  /** New or changed calls, by id. */
  | { readonly line: 'calls'; readonly calls: readonly CallEntry[] }
  /** Calls that are no longer kept. */
  | { readonly line: 'removed'; readonly ids: readonly string[] }
  /** The next items of a call. `from` is the number of events, marks and deltas before them; 0 starts the log again. */
  | {
      readonly line: 'log';
      readonly id: string;
      readonly from: number;
      readonly items: readonly LogItem[];
    }
  | {
      readonly line: 'layers';
      readonly id: string;
      readonly callId: string;
      readonly layers: readonly LayerEntry[];
    }
  /** All holds. */
  | { readonly line: 'holds'; readonly holds: readonly Hold[] }
  | { readonly line: 'breakpoints'; readonly breakpoints: readonly Breakpoint[] }
  /** Something that the person should know. */
  | { readonly line: 'notice'; readonly text: string };

/**
 * The requests of the page, below `api/`. All need the header `authorization: Bearer {token}`; the token is in the hash
 * of the page's address, as `#token={token}`. Bodies are JSON. Errors have a JSON body `{ error }` with a sentence.
 *
 * - `GET feed`: the feed.
 * - `GET calls/{id}`: adds the log of a call to the feed, from `from` 0; answers 204. While it runs, the feed follows it.
 * - `GET search?q={text}&until={time}`: the ids of the calls whose log contains the text, as JSON `{ ids, until? }`; events,
 *   not marks. It reads a part of a store, the last written calls first: with `until`, older ones can be searched.
 * - `GET exchanges/{id}`: what was sent to the provider for a request, by the id of its mark: a list of `Exchange`, one for each
 *   attempt, empty if it is not kept.
 * - `POST older`: adds older calls of a store to the feed; answers `{ isMore }`, whether there may be more.
 * - `PUT breakpoints`: a list of `Breakpoint`.
 * - `POST holds/{id}`: a `HoldAction`.
 * - `POST calls/{id}/fork`: a `ForkRequest`; answers `{ id }`, the id of the new call, which appears in the feed.
 * - `POST calls/{id}/interrupt`: `{ message? }`; answers 204. Only of a call that runs here.
 */
export type HoldAction =
  /** Continues with the event, as it was or as edited. */
  | { readonly action: 'continue'; readonly event?: Readonly<Record<string, unknown>> }
  /** Continues, and holds the next event of this call that can be held. */
  | { readonly action: 'step'; readonly event?: Readonly<Record<string, unknown>> }
  /** Drops the event, as an interceptor that emits nothing does. */
  | { readonly action: 'veto' };

/** Repeats a call from a step: `at` is the id of the first step that is performed again, such as `2` or `2/0`. */
export interface ForkRequest {
  readonly at: string;
  /** New texts of kept steps, by step id: of the question (`call`), of a message (`1`) or of a tool result (`1/0`). */
  readonly edits?: Readonly<Record<string, string>>;
}

/** The result of a search. `until`: the time from which older calls can be searched; absent after the oldest. */
export interface Found {
  readonly ids: readonly string[];
  readonly until?: number;
}

/** A request to a provider as it was sent, without keys, and its response. */
export type { WatchedExchange as Exchange } from '@millrace/wire/watch';
