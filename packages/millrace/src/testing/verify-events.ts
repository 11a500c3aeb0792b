import {
  concat,
  defer,
  EMPTY,
  lastValueFrom,
  type MonoTypeOperatorFunction,
  type Observable,
  tap,
  toArray,
} from 'rxjs';
import type { AgentEvent } from '../events.js';
import { type Citation, textOf, toolCallsOf } from '../values/message.js';
import { isSpoken } from '../operators/event-operators.js';

interface Heard {
  iteration: number;
  asking: boolean;
  planning: boolean;
  messageId: string | undefined;
  readonly voided: Set<string>;
  readonly toolCalls: Map<string, 'asked' | 'acting' | 'done'>;
  ended: boolean;
  isResumed: boolean;
  readonly isHeard: boolean;
}

export interface VerifyEventsOptions {
  /** Whether emitted text of sub-agents may be edited later, as by an interceptor of `postCall`. Default: false. */
  readonly edits?: boolean | undefined;
}

/** The streamed parts of a message. */
interface Shown {
  readonly deltas: string[];
  readonly citations: Citation[];
}

type Texts = Map<string, Shown>;

/**
 * Passes the events of a call on, and errors at the first one that violates their grammar: `seq` increases; a call starts with
 * `preCall`, or with `stepReplayed` if it is resumed; a request is opened before its chunks and closed before the next; each tool
 * call starts once and ends once; each call has one last event, and nothing follows it; the text of sub-agents that speak for
 * the root is the text of its reply.
 */
export const verifyEvents =
  ({ edits = false }: VerifyEventsOptions = {}): MonoTypeOperatorFunction<AgentEvent> =>
  (event$) =>
    defer(() => {
      const calls = new Map<string, Heard>();
      const texts: Texts = new Map();
      let seq = 0;
      const take = (event: AgentEvent): void => {
        if (event.seq <= seq) fail(event, `seq ${event.seq} follows ${seq}`);
        seq = event.seq;
        hear(event, calls);
        if (!edits) listen(event, texts);
      };
      const allEnded = defer(() => {
        for (const [id, { ended }] of calls) {
          if (!ended) throw new Error(`The call '${id}' completed without its last event.`);
        }
        if (calls.size === 0) throw new Error('A call completed without any event.');
        return EMPTY;
      });
      return concat(event$.pipe(tap(take)), allEnded);
    });

const hear = (event: AgentEvent, calls: Map<string, Heard>): void => {
  const heard = calls.get(event.callId) ?? begin(event, calls);
  if (heard.ended) fail(event, 'its call has ended');
  if (event.iteration < heard.iteration) fail(event, `its iteration is ${event.iteration}`);
  heard.iteration = event.iteration;
  switch (event.type) {
    case 'preCall':
      return;
    case 'preReasoning':
    case 'preSummary':
    case 'prePlanning':
      allDone(event, heard);
      if (heard.asking && !heard.planning) fail(event, 'a request is under way');
      heard.asking = true;
      heard.planning = event.type === 'prePlanning';
      heard.messageId = undefined;
      return;
    case 'reasoningChunk':
    case 'summaryChunk':
    case 'planningChunk':
      if (!heard.asking) fail(event, 'no request is under way');
      if (heard.voided.has(event.messageId)) fail(event, 'its message was discarded');
      heard.messageId ??= event.messageId;
      if (heard.messageId !== event.messageId) fail(event, 'another message is growing');
      return;
    case 'messageDiscarded':
      heard.voided.add(event.messageId);
      heard.messageId = undefined;
      heard.toolCalls.clear();
      return;
    case 'postReasoning':
      if (!heard.asking) fail(event, 'no request is under way');
      heard.asking = false;
      heard.toolCalls.clear();
      if (event.finish !== 'stop') return;
      for (const { id } of toolCallsOf(event.message)) heard.toolCalls.set(id, 'asked');
      return;
    case 'postSummary':
    case 'postPlanning':
      if (!heard.asking) fail(event, 'no request is under way');
      heard.asking = false;
      return;
    case 'preActing':
      move(event, heard, event.toolCall.id, 'asked', 'acting');
      return;
    case 'repaired':
      if (event.toolCall === undefined) return;
      // Its validation, which drops nulls, comes after `preActing`.
      if (heard.toolCalls.get(event.toolCall.id) === 'acting') return;
      move(event, heard, event.toolCall.id, 'asked');
      return;
    case 'inputEdited': {
      const { id } = event.from;
      move(event, heard, id, heard.toolCalls.get(id) === 'asked' ? 'asked' : 'acting');
      return;
    }
    case 'suspended':
      move(event, heard, event.toolCall.id, 'done');
      return;
    case 'actingChunk':
    case 'approvalRequested':
    case 'approvalDecided':
      move(event, heard, event.toolCall.id, 'acting');
      return;
    case 'postActing':
      // A result for a suspended tool call of an earlier call.
      if (event.iteration === 0) return;
      move(event, heard, event.toolCall.id, 'acting', 'done');
      return;
    case 'postCall':
      if (event.reply.reason !== 'stopped') allDone(event, heard);
      heard.ended = true;
      return;
    case 'error':
      heard.ended = true;
      return;
    case 'stepReplayed':
      heard.isResumed = true;
      return;
    default:
      return;
  }
};

const listen = (event: AgentEvent, texts: Texts): void => {
  switch (event.type) {
    case 'reasoningChunk':
    case 'summaryChunk': {
      if (event.speaks !== true) return;
      const { messageId, kind, delta, citation } = event;
      const shown = texts.get(messageId) ?? { deltas: [], citations: [] };
      if (kind === 'text') shown.deltas.push(delta);
      if (citation !== undefined) shown.citations.push(citation);
      if (kind === 'text' || kind === 'citation') texts.set(messageId, shown);
      return;
    }
    case 'messageDiscarded':
      texts.delete(event.messageId);
      return;
    case 'postCall': {
      const shown = texts.get(event.reply.id);
      if (shown === undefined) return;
      const [streamed, text] = [shown.deltas.join(''), textOf(event.reply)];
      if (streamed !== text) {
        fail(event, `its reply says '${text}', and '${streamed}' was streamed for it`);
      }
      const cited = event.reply.content.flatMap((block) =>
        block.type === 'text' ? (block.citations ?? []) : [],
      );
      if (cited.length !== shown.citations.length) {
        fail(
          event,
          `its reply has ${cited.length} citations, not the ${shown.citations.length} streamed`,
        );
      }
      return;
    }
    default:
      return;
  }
};

const begin = (event: AgentEvent, calls: Map<string, Heard>): Heard => {
  const isResumed = event.type === 'stepReplayed';
  const isFirst =
    isResumed ||
    event.type === 'preCall' ||
    event.type === 'error' ||
    event.type === 'handlerError';
  if (!isFirst) fail(event, 'its call has not begun');
  if (event.parentId !== undefined && calls.get(event.parentId)?.ended !== false) {
    fail(event, `the call above it, '${event.parentId}', is not running`);
  }
  const above = event.parentId === undefined ? undefined : calls.get(event.parentId);
  if (event.speaks === true && above?.isHeard !== true) {
    fail(event, 'it speaks for a call that does not speak');
  }
  const heard: Heard = {
    iteration: 0,
    asking: false,
    planning: false,
    messageId: undefined,
    voided: new Set(),
    toolCalls: new Map(),
    ended: false,
    isResumed,
    isHeard: isSpoken(event),
  };
  calls.set(event.callId, heard);
  return heard;
};

const move = (
  event: AgentEvent,
  { toolCalls, isResumed }: Heard,
  id: string,
  from: 'asked' | 'acting' | 'done',
  to = from,
): void => {
  // Tool calls before the resume are not reported again.
  const stage = toolCalls.get(id) ?? (isResumed ? from : undefined);
  if (stage !== from) fail(event, `the tool use '${id}' is ${stage ?? 'not asked for'}`);
  toolCalls.set(id, to);
};

const allDone = (event: AgentEvent, { toolCalls }: Heard): void => {
  for (const [id, stage] of toolCalls) {
    if (stage !== 'done') fail(event, `the tool use '${id}' is only ${stage}`);
  }
};

const fail = (event: AgentEvent, why: string): never => {
  throw new Error(
    `The event '${event.type}' (seq ${event.seq}, call '${event.callId}') cannot come here: ${why}.`,
  );
};

/** Makes a call, and resolves to its events; rejects if they violate the grammar of events. */
export const record = (events$: Observable<AgentEvent>): Promise<readonly AgentEvent[]> =>
  lastValueFrom(events$.pipe(verifyEvents(), toArray()));

/** One rule of a contract. Pass `name` and `run` to your test runner. */
export interface Check {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** Checks by name. Each runs on a subject of its own. */
export const checksOf = <Subject>(
  create: () => Subject | Promise<Subject>,
  checks: Readonly<Record<string, (subject: Subject) => unknown>>,
): readonly Check[] =>
  Object.entries(checks).map(([name, check]) => ({
    name,
    run: async () => {
      await check(await create());
    },
  }));
