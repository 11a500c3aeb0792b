import type { Agent, AgentEvent, Demand, Input, Use } from 'millrace';
import type { Rule } from 'millrace/values';
import type { Observable, OperatorFunction } from 'rxjs';
import type { ApprovalQueue } from '../approvals/approval-queue.js';
import type { VerdictOfClient } from '../approvals/read-verdict.js';
import type { PartOptions } from '../inbound.js';
import type { MaskOptions } from '../masks.js';
import type { AskedAlone } from './alone.js';
import type { ChatChange, ListedChat, ListQuery } from './collection.js';
import type { Run } from './call-controls.js';
import type { Asked } from './starting.js';
import type { ToResponse } from './guard.js';
import type { Past } from './past.js';
import type { ReadOptions } from './reading.js';
import type { ShownConversation } from './shown-conversation.js';

/** A protocol of clients: creates its routes, once for each server. */
export interface ChatProtocol {
  (server: ServerOfRoutes): readonly Route[];
  /** Creates layers of every call of the server. They read the `metadata` of a call, which a resumed one still has. */
  readonly use?: (server: ServerOfRoutes) => Use;
  /**
   * Throws for requests that no route of the server may answer. Called with each request before it is answered, and again with its body when a
   * route reads that as JSON.
   */
  readonly assert?: (request: Request, body?: unknown) => void;
}

/** The server that routes belong to. */
export interface ServerOfRoutes {
  readonly agent: Agent;
  readonly approvals: ApprovalQueue | undefined;
  /** For the encoders: what clients see of errors. */
  readonly masks: MaskOptions;
  /** For the decoders: how parts of messages are read that are neither text nor files. */
  readonly parts: PartOptions;
}

/** Answers requests for a path. Hosts, origins and users are checked before. */
export interface Route {
  readonly method: string;
  /** From the root of the server. A part that begins with a colon stands for an id: `/api/chat/:id`. */
  readonly path: string;
  /** Whether it is for this request, rather than another route of its method and path. Default: if no other is. */
  readonly accepts?: (request: Request) => boolean;
  /** Answers without authentication, for a document that anyone may read. Default: false. */
  readonly isPublic?: boolean;
  /** Whether frames of other sites may load it. Its `content-security-policy` lists these sites. Default: false. */
  readonly isFramed?: boolean;
  /** Emits the response. Errors with a `MillraceError` whose `status` and `userMessage` become a response. */
  readonly answer$: (visit: Visit) => Observable<Response>;
  /** Creates the response for an error, also of the guard. Default: a JSON `{ error, code }`. */
  readonly failed?: ToResponse;
}

/** A request of an authenticated user. */
export interface Visit {
  readonly request: Request;
  readonly user: string | undefined;
  /** Emits once the client has left, and completes. */
  readonly left$: Observable<unknown>;
  /** The ids in the path. */
  readonly ids: Readonly<Record<string, string>>;
  /**
   * The path below which clients reach the server, such as `/ai`, if a proxy or a framework has removed it from the request and names it in
   * `x-forwarded-prefix`, as `toNodeListener` does; otherwise empty.
   */
  readonly mount: string;
  /** Reads the body as JSON. Cold, once. Errors with `invalidRequest`: 400, 413 if it is too large, 415 if it is not JSON. */
  readonly body$: Observable<unknown>;
  /** A conversation of this user, by the id that its clients use. */
  readonly chat: (id: string) => Chat;
  /** The conversation of a call. Errors with 404 if it is not one of this user. */
  readonly chatOf$: (callId: string) => Observable<Chat>;
  /** Emits the conversations of this user, the latest first. */
  readonly chats$: (query: ListQuery) => Observable<readonly ListedChat[]>;
  /** Emits a response that streams objects as server-sent events, for as long as the client reads. */
  readonly events$: (event$: Observable<object>) => Observable<Response>;
  /**
   * Emits a call that belongs to no conversation, to be read once. It counts towards `maxCalls`, and is not stored. Errors
   * with `busy` (503) if that limit is reached.
   */
  readonly alone$: (asked: AskedAlone) => Observable<CallAlone>;
}

/** A call that is aborted when its reader leaves. */
export interface CallAlone {
  /** Runs the call, and emits its events. */
  readonly follow$: Observable<AgentEvent>;
  /** Emits a response that runs the call, and streams its events. */
  readonly stream$: (format: StreamFormat) => Observable<Response>;
}

/** A conversation of the authenticated user. */
export interface Chat {
  readonly id: string;
  /** Starts a call, and emits its id once it runs or waits for the earlier ones. */
  readonly start$: (asked: AskedOfChat) => Observable<string>;
  /**
   * Emits the events of a call from the first one, as its reader: a call whose last reader unsubscribes gets
   * `onDisconnect`. Completes once it has ended and is saved. Errors with `invalidResume` (404) if this conversation has no
   * such call.
   */
  readonly follow$: (callId: string, demand?: Demand) => Observable<AgentEvent>;
  /**
   * Emits the events of a call so far, and completes. Does not count as a reader. Emits nothing if the call still waits
   * for its turn. Errors with `invalidResume` (404) as `follow$` does.
   */
  readonly events$: (callId: string, options?: ReadOptions) => Observable<AgentEvent>;
  /** Emits a response that streams a call as server-sent events, from the first one or from `Last-Event-ID` on. */
  readonly stream$: (callId: string, format: StreamFormat, past?: Past) => Observable<Response>;
  /**
   * Decides on tool calls that wait for approval, and emits the id of their call. Verdicts that came before are ignored.
   * Errors with `invalidResume`: 404 if this conversation has no such call, 410 if a tool call no longer waits, 422 if the
   * tool rejects the new input.
   */
  readonly decide$: (verdicts: readonly VerdictOfClient[]) => Observable<string>;
  /** Emits the facts that a client needs if it joins a call late. */
  readonly past$: (callId: string) => Observable<Past>;
  /** Emits the branch that is continued by default, or that of a message, with the question of its open call. */
  readonly history$: (at?: string) => Observable<ShownConversation>;
  /** Continues at the end of the newest branch of a message by default, and completes. Errors with a 409 if it is unknown. */
  readonly moveHead$: (at: string) => Observable<never>;
  /** Sets the title, and emits it as it is kept; `undefined` if there is no such conversation. */
  readonly rename$: (title: string) => Observable<string | undefined>;
  /** Stops the calls of the conversation, removes it and everything that the store keeps for it, and completes. */
  readonly remove$: Observable<never>;
  /** Emits the head, the running call and the title, immediately and after each change. Completes once the conversation is removed. */
  readonly changes$: Observable<ChatChange>;
  /** The calls that have not ended, the running one first. */
  readonly runs$: Observable<readonly Run[]>;
  /** Interrupts the calls that have not ended, or only this one, and emits their number. */
  readonly stop$: (callId?: string) => Observable<number>;
  /** Adds a message to the running call, and emits whether it was delivered. */
  readonly steer$: (input: Input) => Observable<boolean>;
}

/** A request for a call. The server adds the id of the user to its metadata. */
export type AskedOfChat = Omit<Asked, 'metadata'> & Partial<Pick<Asked, 'metadata'>>;

/** How a call is streamed. */
export interface StreamFormat {
  readonly headers: Readonly<Record<string, string>>;
  /** Encodes the events, each object as one server-sent event. */
  readonly encode$: OperatorFunction<AgentEvent, object>;
  /** The data of an additional last event. */
  readonly last?: string;
  /** Whether it begins in the middle of the call: its events then have no ids. */
  readonly isRest?: boolean;
}

/** An option of protocols. */
export const isPath: Rule = [
  (value) => typeof value === 'string' && /^(?:\/[\w.~-]+)*\/?$/u.test(value),
  "a path, such as '/api'",
];
