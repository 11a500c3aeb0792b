import {
  AsyncSubject,
  asyncScheduler,
  catchError,
  concatMap,
  defer,
  finalize,
  map,
  type Observable,
  of,
  type SchedulerLike,
  share,
  tap,
} from 'rxjs';
import { createLocals } from '../step.js';
import { deadline, limitsOf } from '../flow/deadline.js';
import { messageOf } from '../values/errors.js';
import { countMessages, plainCounter } from '../models/count-request.js';
import type { MemoryFactory } from './in-process-memory.js';
import type { Message } from '../values/message.js';
import type { Model } from '../models/model.js';
import { ready } from '../models/answer-tool.js';
import {
  checkOptions,
  isDelay,
  isFunction,
  isModel,
  isScheduler,
  isText,
  type Rule,
  wholeNumber,
} from '../values/options.js';
import { startRun } from '../run.js';
import { noUsage } from '../values/usage.js';
import { askSummary$, type Summary, summaryMessage, summaryPrompt } from './summarise.js';
import { checkInner, shownBy, truncated } from './window-memory.js';
import { lastTurnsFrom } from './transcript.js';
import type { CallInfo } from '../values/reply.js';
import { openDemand } from '../flow/demand.js';
import { createHooks } from '../seams/hooks.js';
import type { streamMessage$ } from '../phases/stream-message.js';
import { createTrampoline } from '../flow/trampoline.js';

export interface SummarisingMemoryOptions {
  /** The model that writes the summaries. */
  readonly model: Model;
  /** The number of latest turns to keep, at least 1. Default: 4. */
  readonly keepTurns?: number | undefined;
  /** Estimated tokens above which a conversation is summarised. Default: 8,000. */
  readonly whenTokens?: number | undefined;
  /** The instructions for the summary. Default: built-in. */
  readonly prompt?: string | undefined;
  /** Maximum number of tokens of a summary. Default: 1,000. */
  readonly maxTokens?: number | undefined;
  /** Timeout after which the conversation is loaded without a summary, in milliseconds. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /** Number of sessions whose summaries are cached; the least recently used are evicted. Default: 1,000. */
  readonly maxSessions?: number | undefined;
  /** Called with a message when a summary fails. Default: ignored. */
  readonly report?: ((warning: string) => void) | undefined;
  /** The scheduler for every wait. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
}

const defaultWhenTokens = 8_000;

interface Shared {
  /** The latest summaries, of one branch or several. */
  known: readonly Known[];
  making?: { readonly lastId: string; readonly summary$: Observable<Summary> };
}

/**
 * Loads a summary of older turns, then the last turns. The wrapped memory keeps everything. A summary is requested when a long
 * conversation is loaded, extends the previous one, and is cached in this process. Concurrent loads share a request. If it fails, the last
 * turns are loaded with a marker, and the next load retries. The usage of summaries is not part of any call's usage.
 */
export const summarisingMemory = (
  inner: MemoryFactory,
  options: SummarisingMemoryOptions,
): MemoryFactory => {
  checkInner('summarisingMemory()', inner);
  checkOptions('summarisingMemory()', options, rules, ['model']);
  const { keepTurns = 4, whenTokens = defaultWhenTokens, maxSessions = 1_000 } = options;
  const sessions = createRecent<Shared>(maxSessions);
  const make$ = maker(options);
  const show = (sessionId: string, messages$: Observable<readonly Message[]>) =>
    messages$.pipe(
      concatMap((messages) => {
        const { known, rest } = viewOf(messages, sessions.get(sessionId)?.known);
        const shown = withSummary(known, rest);
        const from = lastTurnsFrom(rest, keepTurns);
        const last = rest[from - 1];
        if (last === undefined || countMessages(plainCounter, shown) <= whenTokens)
          return of(shown);
        const shared = sessions.get(sessionId) ?? sessions.set(sessionId, { known: [] });
        const next = { lastId: last.id, count: (known?.count ?? 0) + from };
        return shared$(shared, next, () => make$(sessionId, known?.text, rest.slice(0, from))).pipe(
          map((summary) =>
            summary.status === 'made'
              ? withSummary({ ...next, text: summary.text }, rest.slice(from))
              : withSummary(known, truncated(rest, from)),
          ),
        );
      }),
    );
  // New messages may reuse ids: drop the summary.
  return shownBy(inner, show, (sessionId) => sessions.set(sessionId, { known: [] }));
};

const mostBranches = 8;

const shared$ = (
  shared: Shared,
  next: Pick<Known, 'lastId' | 'count'>,
  make: () => Observable<Summary>,
): Observable<Summary> => {
  if (shared.making?.lastId === next.lastId) return shared.making.summary$;
  const making = {
    lastId: next.lastId,
    summary$: make().pipe(
      tap((summary) => {
        if (summary.status !== 'made') return;
        shared.known = [...shared.known.slice(1 - mostBranches), { ...next, text: summary.text }];
      }),
      finalize(() => {
        if (shared.making === making) delete shared.making;
      }),
      share({ connector: () => new AsyncSubject() }),
    ),
  };
  shared.making = making;
  return making.summary$;
};

const maker = ({
  model,
  maxTokens = 1_000,
  prompt = summaryPrompt(maxTokens),
  whenTokens = defaultWhenTokens,
  timeoutMs = 60_000,
  scheduler = asyncScheduler,
  report = () => undefined,
}: SummarisingMemoryOptions) => {
  const readied = ready(model);
  // A long conversation of another process may exceed one request.
  const order = { prompt, maxTokens, portionTokens: Math.max(4_000, 2 * whenTokens) };
  return (
    sessionId: string,
    former: string | undefined,
    messages: readonly Message[],
  ): Observable<Summary> =>
    defer(() => {
      const context = standAlone(sessionId, scheduler);
      const asked = { model: readied, limits: limitsOf({}) };
      const position = `summary/${messages.at(-1)?.id ?? ''}`;
      return askSummary$(context, asked, startRun([], []), position, {
        ...order,
        former,
        messages,
      });
    }).pipe(
      deadline(timeoutMs, scheduler, 'The summary', 'timeoutMs'),
      catchError((error: unknown) => of(failed(messageOf(error)))),
      tap((summary) => {
        if (summary.status === 'failed') {
          quietly(() => {
            report(`The session '${sessionId}' is loaded without a summary: ${summary.why}`);
          });
        }
      }),
    );
};

const failed = (why: string): Summary => ({ status: 'failed', why, usage: noUsage });

const quietly = (callback: () => void): void => {
  try {
    callback();
  } catch {
    // Errors of the callback are ignored.
  }
};

const rules: Readonly<Record<keyof SummarisingMemoryOptions, Rule>> = {
  model: isModel,
  keepTurns: wholeNumber(1),
  whenTokens: wholeNumber(0),
  prompt: isText,
  maxTokens: wholeNumber(1),
  timeoutMs: isDelay,
  maxSessions: wholeNumber(1),
  report: isFunction,
  scheduler: isScheduler,
};

interface Known {
  readonly text: string;
  readonly lastId: string;
  readonly count: number;
}

/** Splits a conversation after the last summarised message. A summary of another branch is not used. */
const viewOf = (
  messages: readonly Message[],
  summaries: readonly Known[] = [],
): { readonly known: Known | undefined; readonly rest: readonly Message[] } => {
  const last = messages.findLastIndex(({ id }) => summaries.some(({ lastId }) => lastId === id));
  if (last === -1) return { known: undefined, rest: messages };
  const known = summaries.findLast(({ lastId }) => lastId === messages[last]?.id);
  return { known, rest: messages.slice(last + 1) };
};

const withSummary = (known: Known | undefined, rest: readonly Message[]): readonly Message[] =>
  known === undefined
    ? rest
    : [summaryMessage(`summary/${known.lastId}`, known.text, known.count), ...rest];

/** A map that evicts the least recently used values. */
interface Recent<Value> {
  get(key: string): Value | undefined;
  set(key: string, value: Value): Value;
}

const createRecent = <Value>(most: number): Recent<Value> => {
  const values = new Map<string, Value>();
  const set = (key: string, value: Value): Value => {
    values.delete(key);
    values.set(key, value);
    for (const oldest of values.keys()) {
      if (values.size <= most) break;
      values.delete(oldest);
    }
    return value;
  };
  return {
    get: (key) => {
      const value = values.get(key);
      return value === undefined ? undefined : set(key, value);
    },
    set,
  };
};

/** The context of a request outside of calls: without observers and interrupts. */
const standAlone = (
  sessionId: string,
  scheduler: SchedulerLike,
): Parameters<typeof streamMessage$>[0] => {
  const info: CallInfo = {
    rootId: sessionId,
    callId: sessionId,
    sessionId,
    agent: [],
    metadata: {},
  };
  return {
    info,
    scheduler,
    hooks: createHooks({
      call: info,
      scheduler,
      interceptors: [],
      listeners: [],
      deliver: createTrampoline(),
      nextSeq: () => 0,
    }),
    demand: openDemand,
    local: createLocals(new Map()),
  };
};
