import { randomBytes } from 'node:crypto';
import { type EventOf, MillraceError, type on } from 'millrace';
import { isMessage, isRecord } from 'millrace/values';
import { EMPTY, Observable, type Subscriber, type Subscription } from 'rxjs';
import { shown } from './call-log.js';
import type { Breakpoint, Hold, HoldAction, Mark } from './page/protocol.js';

/** The types that can be held: those that interceptors may change. */
export type HoldableType = Parameters<typeof on>[0];

export type HoldableEvent = EventOf<HoldableType>;

/** Has each type, or does not compile. */
const isHoldable: Readonly<Record<HoldableType, true>> = {
  preCall: true,
  summaryChunk: true,
  planningChunk: true,
  preReasoning: true,
  postReasoning: true,
  preActing: true,
  actingChunk: true,
  postActing: true,
  preSummary: true,
  postSummary: true,
  prePlanning: true,
  postPlanning: true,
  postCall: true,
};

export const holdable = Object.keys(isHoldable).filter(
  (type): type is HoldableType => type in isHoldable,
);

/** The breakpoints, and the events that they hold. */
export interface Holds {
  readonly current: readonly Hold[];
  readonly breakpoints: readonly Breakpoint[];
  set(breakpoints: readonly Breakpoint[]): void;
  /** Whether an event is to be held. */
  wants(event: HoldableEvent): boolean;
  /** Holds an event: emits it, edited or not, when a person continues; completes empty for a veto. Cold. */
  hold$(event: HoldableEvent, halt: Halt): Observable<HoldableEvent>;
  /** Ends a hold. Throws if the id is unknown, or the edit does not fit. */
  act(id: string, action: HoldAction): void;
  /** Continues the held events of a call, which is interrupted or has ended. */
  release(rootId: string): void;
  /** Continues every held call, and removes the breakpoints. */
  releaseAll(): void;
}

/** The effects of a hold on its call. */
export interface Halt {
  readonly now: () => number;
  /** Stops the clock of the call; the returned function starts it. */
  readonly stop: () => () => void;
  readonly mark: (mark: Mark) => void;
}

interface Held {
  readonly hold: Hold;
  readonly event: HoldableEvent;
  readonly to: Subscriber<HoldableEvent>;
  readonly end: (phase: Ending) => void;
}

type Ending = Extract<Mark, { readonly mark: 'hold' }>['phase'];

/** `now` is the time of this machine, not that of held calls. */
export const createHolds = (now: () => number, onChange: () => void): Holds => {
  const { held, list, register } = createHeld(now, onChange);
  const stepping = new Set<string>();
  let breakpoints: readonly Breakpoint[] = [];
  const letGo = (it: Held, event: HoldableEvent): void => {
    it.end(event === it.event ? 'continued' : 'edited');
    it.to.next(event);
    it.to.complete();
  };
  return {
    get current() {
      return list();
    },
    get breakpoints() {
      return breakpoints;
    },
    set: (wanted) => {
      breakpoints = wanted;
      onChange();
    },
    wants: (event) => stepping.has(event.rootId) || breakpoints.some((it) => matches(it, event)),
    hold$: (event, halt) =>
      new Observable((subscriber): Subscription | (() => void) => {
        stepping.delete(event.rootId);
        return register(event, halt, subscriber);
      }),
    act: (id, action) => {
      const it = held.get(id);
      if (it === undefined) throw refused(404, 'This call is no longer held.');
      if (action.action === 'veto') {
        it.end('vetoed');
        EMPTY.subscribe(it.to);
        return;
      }
      const event = action.event === undefined ? it.event : edited(it, action.event);
      if (action.action === 'step') stepping.add(event.rootId);
      letGo(it, event);
    },
    release: (rootId) => {
      stepping.delete(rootId);
      for (const it of [...held.values()]) if (it.event.rootId === rootId) letGo(it, it.event);
    },
    releaseAll: () => {
      stepping.clear();
      breakpoints = [];
      for (const it of [...held.values()]) letGo(it, it.event);
      onChange();
    },
  };
};

/** The calls that are held. */
const createHeld = (now: () => number, onChange: () => void) => {
  const held = new Map<string, Held>();
  // A page may still show a hold of the process before.
  const origin = randomBytes(6).toString('hex');
  let count = 0;
  let current: readonly Hold[] = [];
  const changed = (): void => {
    current = Array.from(held.values(), ({ hold }) => hold);
    onChange();
  };
  /** Holds a call, until the returned function or its `end` is called. */
  const register = (
    event: HoldableEvent,
    { now: callNow, stop, mark }: Halt,
    to: Subscriber<HoldableEvent>,
  ): (() => void) => {
    count += 1;
    const id = `hold-${origin}-${count}`;
    const { type, rootId, callId, agent } = event;
    const since = now();
    const go = stop();
    const note = (phase: Ending, heldMs?: number): void => {
      const about = { mark: 'hold', at: callNow(), callId, id, of: type, phase } as const;
      mark(heldMs === undefined ? about : { ...about, heldMs });
    };
    const end = (phase: Ending): void => {
      if (!held.delete(id)) return;
      note(phase, now() - since);
      go();
      changed();
    };
    const hold: Hold = { id, rootId, callId, agent, since, event: shown(event, Infinity) };
    held.set(id, { hold, event, to, end });
    note('held');
    changed();
    return () => end('cancelled');
  };
  return { held, list: () => current, register };
};

const matches = ({ type, text = '' }: Breakpoint, event: HoldableEvent): boolean =>
  type === event.type &&
  (text === '' || JSON.stringify(shown(event)).toLowerCase().includes(text.toLowerCase()));

/** The origin of an event, which an edit leaves as it is. */
const envelope: ReadonlySet<string> = new Set([
  ...['type', 'rootId', 'callId', 'parentId', 'agent', 'speaks', 'iteration', 'seq', 'at'],
]);

/** The event with the fields that were edited. The others stay what they are, also what JSON cannot express. */
const edited = ({ event, hold }: Held, given: Readonly<Record<string, unknown>>): HoldableEvent => {
  const before: Readonly<Record<string, unknown>> = hold.event;
  const fields = Object.entries(given).filter(
    ([name, value]) =>
      !envelope.has(name) && JSON.stringify(value) !== JSON.stringify(before[name]),
  );
  if (fields.length === 0) return event;
  const made = withIds({ ...event, ...Object.fromEntries(fields) }, event);
  const problem = problemIn(made);
  if (problem !== undefined) throw refused(400, problem);
  // eslint-disable-next-line @typescript-eslint/consistent-type-assertions -- checked above, and again by the call
  return made as unknown as HoldableEvent;
};

/** Ids say what belongs together: an edit keeps them. */
const withIds = (
  made: Readonly<Record<string, unknown>>,
  event: HoldableEvent,
): Readonly<Record<string, unknown>> => {
  const { toolCall, result } = made;
  return {
    ...made,
    ...(isRecord(toolCall) && 'toolCall' in event
      ? { toolCall: { ...toolCall, type: 'tool_call', id: event.toolCall.id } }
      : {}),
    ...(isRecord(result) && 'result' in event
      ? { result: { ...result, type: 'tool_result', toolCallId: event.result.toolCallId } }
      : {}),
  };
};

const problemIn = (event: Readonly<Record<string, unknown>>): string | undefined => {
  const { messages, options, message, toolCall, result, reply, usage, finish, input, delta } =
    event;
  if ('messages' in event && !(Array.isArray(messages) && messages.every(isWholeMessage)))
    return "'messages' must be a list of messages with 'id', 'role' and 'content'.";
  if ('input' in event && !(Array.isArray(input) && input.every(isWholeMessage)))
    return "'input' must be a list of messages with 'id', 'role' and 'content'.";
  if ('delta' in event && typeof delta !== 'string') return "'delta' must be a string.";
  if ('options' in event && !isRecord(options)) return "'options' must be an object.";
  if ('toolCall' in event && !isToolCall(toolCall))
    return "'toolCall' needs a 'name' and an 'input' that is an object.";
  if ('message' in event && !hasBlocks(message)) return `'message' ${needsBlocks}`;
  if ('result' in event && !hasBlocks(result)) return `'result' ${needsBlocks}`;
  if ('reply' in event && !(hasBlocks(reply) && isRecord(reply) && isUsage(reply['usage'])))
    return `'reply' ${needsBlocks} Its 'usage' has numbers.`;
  if ('usage' in event && !isUsage(usage)) return "'usage' must have numbers of tokens.";
  if ('finish' in event && !finishes.some((it) => it === finish))
    return `'finish' must be one of ${finishes.join(', ')}.`;
  return undefined;
};

const finishes = ['stop', 'length', 'refusal', 'filtered'];

const isUsage = (value: unknown): boolean =>
  isRecord(value) &&
  ['inputTokens', 'outputTokens'].every((name) => typeof value[name] === 'number');

const needsBlocks = "needs a 'content' that is a list of blocks with a 'type'.";

const hasBlocks = (value: unknown): boolean =>
  isRecord(value) &&
  Array.isArray(value['content']) &&
  value['content'].every(
    (block: unknown) =>
      isRecord(block) &&
      typeof block['type'] === 'string' &&
      (block['type'] !== 'text' || typeof block['text'] === 'string'),
  );

const isWholeMessage = (value: unknown): boolean => isMessage(value) && hasBlocks(value);

const isToolCall = (value: unknown): boolean =>
  isRecord(value) && typeof value['name'] === 'string' && isRecord(value['input']);

/** The error of a request of the page. */
export const refused = (status: number, message: string): MillraceError =>
  new MillraceError('invalidRequest', message, { status, userMessage: message });
