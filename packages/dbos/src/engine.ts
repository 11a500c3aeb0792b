import type { Agent, AgentEvent, Input, Reply, ToolCallBlock, Verdict } from 'millrace';
import type { fork$ } from 'millrace/journal';
import type { DatabaseStore, PostgresOptions } from '@millrace/store/postgres';
import type { PoolConfig } from 'pg';
import type { Observable } from 'rxjs';
import type { StartOptions } from './order.js';
import type { WorkedAgent, WorkNotice, WorkOptions } from './worked-agents.js';

export interface DbosOptions {
  /**
   * Pins calls to a version of the program. With it, workers only run the calls of their own version, so that a call ends with the agent
   * that it began with; `adopt$` moves the rest. Without it, all workers without one run all calls: after a deploy, calls continue with the
   * new agents.
   */
  readonly version?: string | undefined;
  /** Engines of the same name share their queues. Default: `millrace`. */
  readonly name?: string | undefined;
  /** The schema of DBOS, created if it does not exist. Default: `dbos`. */
  readonly schema?: string | undefined;
  /** Options of the store of the same database, in a schema of its own. */
  readonly store?: PostgresOptions | undefined;
  /** Options of the `pg` pool of the engine, such as `ssl` and `max`, which is at least 3; the store has its own. Default: 10 connections. */
  readonly pool?: PoolConfig | undefined;
}

/** The place of a call: `abandoned` calls have stopped too many workers. */
export interface CallPlace {
  readonly status: 'delayed' | 'queued' | 'running' | 'ended' | 'failed' | 'aborted' | 'abandoned';
  readonly agent: string;
  readonly sessionId?: string;
  /** The version that the call is pinned to, or that of the worker which ran it last. */
  readonly version?: string;
}

export interface FollowOptions {
  /** The `seq` of the last received event: only later ones are emitted. Default: 0. */
  readonly afterSeq?: number | undefined;
}

/** Calls of agents on any number of processes, over one Postgres database. Opens nothing before the first use. */
export interface DbosEngine {
  /** Journals, sessions and memories, for `attach$`, `replay$`, `steps$`, `calls$` and `keepSessions`. */
  readonly store: DatabaseStore;
  /**
   * Runs calls of agents in this process, once per process, until unsubscribed. Emits what the worker does; failed calls do not end it.
   * Errors with `store` if the database cannot be used at the start, and with `config`. Cold.
   */
  work$(agents: readonly (Agent | WorkedAgent)[], options?: WorkOptions): Observable<WorkNotice>;
  /**
   * Queues a call for an agent of any worker. Emits its id once it is durable, and completes. Errors with `conflict` if there is such a
   * call, `config` for options that JSON cannot express, and `store`. Cold.
   */
  start$(
    agent: string | Pick<Agent, 'name'>,
    input: Input,
    options?: StartOptions,
  ): Observable<string>;
  /**
   * Follows a call of any worker, as `attach$` of the journal, also before it starts. Errors with `invalidResume` if there is no such call,
   * and `aborted` if it was aborted or given up. Cold.
   */
  attach$(callId: string, options?: FollowOptions): Observable<AgentEvent>;
  /** Emits the reply of a call and completes. Errors as the call does, and as `attach$`: with `store`, ask again. Cold. */
  reply$(callId: string): Observable<Reply>;
  /** Interrupts a call; one that has not started ends when it does. A message becomes the text of the reply. Completes once it is durable; errors with `invalidResume` if the call is over. Cold. */
  interrupt$(callId: string, message?: string): Observable<never>;
  /** Adds a user message to the call of a session before its next request, which emits `steered`. Completes and errors as `interrupt$`. Cold. */
  steer$(callId: string, message: string): Observable<never>;
  /** Answers the event `approvalRequested` of a tool with `awaitDecision`. The first answer counts: another one, once the call has continued, errors with
   * `invalidResume` and names the one that counts, and the same one again completes. Completes and errors as `interrupt$`. Cold. */
  decide$(asked: AskedTool, verdict: Verdict): Observable<never>;
  /**
   * Continues a suspended call of a session with the results of its tool calls, by their ids. Emits the id of the call that continues it.
   * Errors with `conflict` if it has an answer, or its time is over. Cold.
   */
  answer$(callId: string, results: Readonly<Record<string, unknown>>): Observable<string>;
  /** Queues a call that failed, was aborted or was given up, to continue after its last step. Emits its id. Others do not change. Cold. */
  resume$(callId: string): Observable<string>;
  /** Forks a call as `fork$` of the journal, and queues the new one for the same agent. Emits its id. Cold. */
  fork$(callId: string, options: Parameters<typeof fork$>[2]): Observable<string>;
  /** Ends a call immediately; running tools may have done their work. Completes and errors as `interrupt$`. Cold. */
  abort$(callId: string): Observable<never>;
  /** Emits the place of a call. Errors with `invalidResume` if there is no such call. Cold. */
  find$(callId: string): Observable<CallPlace>;
  /**
   * Moves the calls that have not ended from an old version, or from none, to that of this engine. Emits their ids. Calls that live
   * workers run stay. Cold.
   */
  adopt$(version?: string): Observable<readonly string[]>;
  /** Removes calls of the engine that ended before a time, from the store and DBOS; suspended ones stay. Emits their ids. Cold. */
  prune$(options: { readonly olderThanMs: number }): Observable<string>;
  /** Stops the worker of this process, and completes when all connections are closed. Cold. */
  close$(): Observable<never>;
}

/** The event `approvalRequested`, or its ids. A decision on an input that another approver edited needs the event. */
export interface AskedTool {
  readonly rootId: string;
  readonly callId: string;
  readonly toolCall: { readonly id: string } & Partial<Pick<ToolCallBlock, 'name' | 'input'>>;
}
