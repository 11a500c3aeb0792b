import {
  addUsage,
  type CallInfo,
  cell,
  createAgent,
  isMillraceError,
  type Layer,
  type Message,
  MillraceError,
  type Model,
  noUsage,
  output,
  outputOf,
  type Reply,
  type Usage,
} from '@millrace/core';
import { checkScope, type LongTermMemory, type MemoryScope } from '@millrace/core/long-term-memory';
import { insertBefore, phase, reasoning } from '@millrace/core/phases';
import { budget, type Price } from '@millrace/core/traffic';
import {
  checkOptions,
  having,
  isDelay,
  isObject,
  isText,
  isFunction,
  type Rule,
  wholeNumber,
} from '@millrace/core/values';
import {
  asyncScheduler,
  catchError,
  concat,
  concatMap,
  defer,
  from,
  ignoreElements,
  map,
  type Observable,
  of,
  retry,
  type SchedulerLike,
  Subject,
  timer,
} from 'rxjs';
import { changesBy, type Changes, type Operation } from './changes.js';
import {
  type Access,
  currentFacts,
  entryOf,
  type Fact,
  factsIn$,
  forget$,
  formerEntryOf,
  type FormerFact,
  formerFactsIn$,
  formerIdOf,
  historySession,
  inTime,
  isReserved,
  record$,
} from './facts.js';
import {
  extractionRequest,
  instructions as basicInstructions,
  operationsSchema,
  readOperations,
  type Refusal,
} from './operations.js';
import { createQueue, type Due } from './queue.js';
import {
  commonSecrets,
  entryOfTurn,
  type Turn,
  turnMessages,
  waitingScope,
  type WaitingTurn,
  waitingTurns$,
} from './turns.js';

/** Options of `extractMemories`. */
export interface ExtractMemoriesOptions {
  /** The model that extracts facts. A small one is enough. */
  readonly model: Model;
  /** The memory that persists facts, such as `store.longTermMemory`. */
  readonly memory: LongTermMemory;
  /** The owner of the facts of a call: a user, or one session. Default: `metadata.userId`. */
  readonly scope?: (call: CallInfo) => MemoryScope;
  /** Extracts after the user has been quiet this long, in milliseconds. Default: 30,000. */
  readonly quietMs?: number;
  /** Extracts earlier if this many calls wait. Also the maximum number of calls per request. Default: 5. */
  readonly everyTurns?: number;
  /** Maximum number of related facts that the model is shown. Default: 20. */
  readonly candidates?: number;
  /** Maximum number of facts per user or session; evicts the oldest. The history keeps as many. Default: 200. */
  readonly maxFacts?: number;
  /** When facts expire, in milliseconds, unless the model finds a time. Default: never. */
  readonly ttlMs?: number;
  /** Patterns of text that is never stored, in addition to keys, passwords, and numbers of cards and accounts. */
  readonly secrets?: readonly RegExp[];
  /** Instructions on what matters to your program, added to the prompt. Default: none. */
  readonly instructions?: string;
  /** Layers of the extracting agent, such as a `sharedBudget` that also counts calls. Default: none. */
  readonly use?: readonly (Layer | readonly Layer[])[];
  /** Prices per million tokens, by model, for `money`. Default: none. */
  readonly prices?: Readonly<Record<string, Price>>;
  /** Maximum number of users whose turns are extracted at the same time. Default: 4. */
  readonly concurrency?: number;
  /** Attempts to extract before the turns are left for later. Default: 3. */
  readonly attempts?: number;
  /** Timeout of each operation of the memory, in milliseconds. Default: 5,000. */
  readonly timeoutMs?: number;
  /** The scheduler of all waits in the background, and the clock. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike;
}

/** The cost of extraction. */
export interface ExtractionCost {
  readonly usage: Usage;
  /** 0 without `prices`. */
  readonly money: number;
}

/** A result of the background work. */
export type ExtractionEvent =
  | ({
      /** Facts were extracted from calls, or consolidated. */
      readonly type: 'memoriesExtracted';
      readonly scope: MemoryScope;
      /** The number of calls. */
      readonly turns: number;
      readonly added: readonly Fact[];
      /** Facts that replace former ones. */
      readonly updated: readonly Fact[];
      readonly forgotten: readonly Fact[];
      /** Facts that moved to the history. */
      readonly former: readonly FormerFact[];
      readonly refused: readonly Refusal[];
      /** The duration in milliseconds. */
      readonly ms: number;
    } & ExtractionCost)
  | ({
      /** A warning: extraction failed. The turns stay in the memory. */
      readonly type: 'extractionFailed';
      readonly scope: MemoryScope;
      readonly turns: number;
      readonly error: MillraceError;
      /** The model's answers were unusable, so only `flush$(scope)` tries again. Otherwise, the user's next call does. */
      readonly isParked: boolean;
      readonly ms: number;
    } & ExtractionCost);

/** A layer that extracts facts, and the facts. */
export interface MemoryExtraction extends Layer {
  /** The memory for `withLongTermMemory`: it recalls the facts that hold now, and records no whole calls. */
  readonly facts: LongTermMemory;
  /** Emits what happens in the background. Hot; completes on `close`, never errors. */
  readonly events$: Observable<ExtractionEvent>;
  /** The cost since the start. */
  readonly spent: ExtractionCost;
  /**
   * Extracts from all turns that wait, and completes when nothing is left to do: call it before the process ends. With a
   * scope, also takes up turns of this user that another process or a failure has left. Cold; never errors.
   */
  flush$(scope?: MemoryScope): Observable<never>;
  /** Merges duplicates, drops expired facts and evicts the oldest ones, without a model. Cold; emits once. */
  consolidate$(scope: MemoryScope): Observable<ExtractionEvent>;
  /** Emits the former facts, latest first, and completes. Cold; errors as the memory does. */
  history$(scope: MemoryScope): Observable<readonly FormerFact[]>;
  /** Stops the background work immediately. Turns that wait stay in the memory. */
  close(): void;
}

/**
 * Creates a layer that remembers facts from conversations. Each call stores its messages as a turn that waits; the reply
 * does not wait for more. After a quiet time or a number of calls, in the background, a model is shown these turns and
 * related facts, and adds, updates and forgets facts. A replaced fact moves to a history that is never recalled. Only
 * words of the user count: each operation must quote them.
 *
 * After a crash, turns that wait are still in the memory, and the next call of the user takes them up. A call without a
 * user gets a `warning`, and nothing is extracted from it.
 *
 * @example
 * ```ts
 * const extraction = extractMemories({ model: small, memory: store.longTermMemory });
 * const agent = createAgent(withLongTermMemory({ model, use: [extraction] }, { memory: extraction.facts }));
 * await agent.call('I moved to Berlin.', { metadata: { userId: 'ann' } });
 * await lastValueFrom(extraction.flush$(), { defaultValue: undefined }); // before the process ends
 * ```
 */
export const extractMemories = (options: ExtractMemoriesOptions): MemoryExtraction => {
  checkOptions('extractMemories()', options, rules, ['model', 'memory']);
  const { memory, scheduler = asyncScheduler, timeoutMs = 5_000, secrets = [] } = options;
  const { scope: scopeOf = scopeOfUser, quietMs = 30_000, everyTurns = 5 } = options;
  const access: Access = { memory, scheduler, timeoutMs };
  const patterns = [...commonSecrets, ...secrets.map(everywhere)];
  const event$ = new Subject<ExtractionEvent>();
  const total: { spent: ExtractionCost } = { spent: nothingSpent };
  const extractor = createExtractor(options, access, patterns);
  const queue = createQueue<ExtractionEvent>({
    work$: extractor.extract$,
    quietMs,
    everyTurns,
    concurrency: options.concurrency ?? 4,
    scheduler,
  });
  // The edge of the background work: it has no other owner, as calls do not wait for it. `close` ends it.
  queue.results$.subscribe({
    next: (event) => {
      total.spent = addCost(total.spent, event);
      event$.next(event);
    },
    error: (cause: unknown) => event$.error(asMillraceError(cause)),
    complete: () => event$.complete(),
  });
  return {
    ...extractionLayer(access, scopeOf, patterns, queue.add),
    facts: currentFacts(access),
    events$: event$.asObservable(),
    get spent() {
      return total.spent;
    },
    flush$: (scope) =>
      defer(() => {
        if (scope !== undefined) {
          checkOwner('flush$()', scope);
          queue.add({ userId: scope.userId, withParked: true });
        }
        return queue.flush$();
      }),
    consolidate$: (scope) =>
      defer(() => {
        checkOwner('consolidate$()', scope);
        return extractor.consolidate$(scope);
      }),
    history$: (scope) =>
      defer(() => {
        checkOwner('history$()', scope);
        return formerFactsIn$(access, scope);
      }),
    close: queue.close,
  };
};

const nothingSpent: ExtractionCost = { usage: noUsage, money: 0 };

const addCost = (a: ExtractionCost, b: ExtractionCost): ExtractionCost => ({
  usage: addUsage(a.usage, b.usage),
  money: a.money + b.money,
});

const everywhere = ({ source, flags }: RegExp): RegExp =>
  new RegExp(source, `${flags.replace(/[gy]/g, '')}g`);

const scopeOfUser = ({ metadata }: CallInfo): MemoryScope => {
  const userId = Object.hasOwn(metadata, 'userId') ? metadata['userId'] : undefined;
  if (userId !== undefined) return { userId };
  throw new MillraceError(
    'config',
    "the call has no user. Pass { metadata: { userId } } with the call, or set 'scope' of extractMemories().",
  );
};

const checkOwner = (owner: string, scope: MemoryScope): void => {
  checkScope(owner, scope);
  if (!isReserved(scope)) return;
  throw new MillraceError(
    'config',
    `${owner}: session ids that start with 'millrace:' are reserved for the history and turns that wait.`,
  );
};

const rules: Readonly<Record<keyof ExtractMemoriesOptions, Rule>> = {
  model: having('stream$', "a model, such as openai('gpt-5-mini')"),
  memory: [
    (value) => ['record$', 'recall$', 'forget$'].every((method) => having(method, '')[0](value)),
    'a LongTermMemory, such as inProcessLongTermMemory()',
  ],
  scope: isFunction,
  quietMs: isDelay,
  everyTurns: wholeNumber(1),
  candidates: wholeNumber(1),
  maxFacts: wholeNumber(1),
  ttlMs: wholeNumber(1),
  secrets: [
    (value) => Array.isArray(value) && value.every((it) => it instanceof RegExp),
    'a list of regular expressions',
  ],
  instructions: isText,
  use: [(value) => Array.isArray(value), 'a list of layers'],
  prices: isObject,
  concurrency: wholeNumber(1),
  attempts: wholeNumber(1),
  timeoutMs: isDelay,
  scheduler: having('schedule', 'an RxJS scheduler'),
};

/** Calls with another end have no answer, or one that their user never saw. */
const completed: readonly string[] = [
  'answer',
  'toolFinal',
  'maxIterations',
  'budget',
  'truncated',
];

/** The messages of a call before its last request: steered messages are statements of the user, too. */
const askedMessages = cell<{ messages?: readonly Message[] }>('call', () => ({}));

const extractionLayer = (
  access: Access,
  scopeOf: (call: CallInfo) => MemoryScope,
  secrets: readonly RegExp[],
  add: (due: Due) => void,
): Layer => ({
  name: 'extractMemories',
  // As the recording of long-term memory: outside of the conversation, so a stored answer is remembered.
  priority: 58,
  info: { observes: true },
  turn: (phases) =>
    phases.includes(reasoning)
      ? insertBefore(reasoning, ({ local }) =>
          phase((run) => {
            local(askedMessages).messages = run.messages;
            return of(run);
          }),
        ).turn(phases)
      : phases,
  call: (context) => (next) => (call) =>
    next(call).pipe(
      concatMap((reply) => {
        const { hooks, perform, local } = context;
        const warn = (message: string): void =>
          hooks.report(reply.iterations, { type: 'warning', message });
        if (call.status !== 'prepared' || !completed.includes(reply.reason)) return of(reply);
        return perform<string | null>({
          kind: 'memory',
          id: 'extractMemories',
          input: reply,
          run: () =>
            defer(() => {
              const scope = scopeOf(context.call);
              checkOwner("extractMemories(): 'scope'", scope);
              const { callId } = context.call;
              const { messages: sent = call.input } = local(askedMessages);
              const asked = statementsIn(callId, sent);
              const messages = turnMessages(asked, reply, secrets);
              if (!messages.some(({ role }) => role === 'user')) return of(null);
              const turn = turnOf(callId, scope, reply, messages);
              const waiting = waitingScope(scope.userId);
              return record$({ ...access, scheduler: context.scheduler }, waiting, [
                entryOfTurn(turn),
              ]).pipe(map(() => scope.userId));
            }).pipe(
              catchError((error: unknown) => {
                warn(`No memories are extracted from the call: ${messageOf(error)}`);
                return of(null);
              }),
            ),
          form: { isWritten: (value) => value === null || typeof value === 'string' },
        }).pipe(
          map((userId) => {
            // Before the reply, so that a flush that follows it sees the turn.
            if (userId !== null) add({ userId, withParked: false });
            return reply;
          }),
        );
      }),
    ),
});

/** The new messages of the user: a call may also bring the conversation before, which has waited already. */
const statementsIn = (callId: string, messages: readonly Message[]): readonly Message[] => {
  const own = messages.filter(({ id }) => id.startsWith(`${callId}/input/`));
  return own.slice(own.findLastIndex(({ role }) => role !== 'user') + 1);
};

const turnOf = (
  callId: string,
  { sessionId }: MemoryScope,
  { createdAt }: Reply,
  messages: Turn['messages'],
): Turn => ({
  callId,
  ...(sessionId === undefined ? {} : { sessionId }),
  at: createdAt,
  messages,
});

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error);

interface Extractor {
  /** Extracts the turns of a user that wait, and emits an event for each batch. Never errors. */
  readonly extract$: (due: Due) => Observable<ExtractionEvent>;
  readonly consolidate$: (scope: MemoryScope) => Observable<ExtractionEvent>;
}

const createExtractor = (
  options: ExtractMemoriesOptions,
  access: Access,
  secrets: readonly RegExp[],
): Extractor => {
  const { model, use = [], candidates = 20, maxFacts = 200, ttlMs, prices } = options;
  const { everyTurns = 5, attempts = 3, instructions = '' } = options;
  const { scheduler } = access;
  const agent = createAgent({
    name: 'extractMemories',
    model,
    instructions: [basicInstructions, instructions].join('\n\n').trim(),
    // A model that hangs must not keep the place of other users.
    limits: { timeouts: { callMs: requestMs } },
    use: [...use, output(operationsSchema())],
  });

  /** The facts that the model may change: all of them if they are few, otherwise those that a search finds. */
  const related$ = (
    scope: MemoryScope,
    facts: readonly Fact[],
    turns: readonly Turn[],
  ): Observable<readonly Fact[]> => {
    if (facts.length <= candidates) return of(facts);
    const text = turns.flatMap(({ messages }) => messages.map((it) => it.text)).join('\n');
    const known = new Map(facts.map((fact) => [fact.id, fact]));
    return access.memory.recall$(scope, { text, limit: 2 * candidates }).pipe(
      inTime(access),
      map((found) => found.flatMap(({ id }) => known.get(id) ?? []).slice(0, candidates)),
    );
  };

  const ask$ = (
    scope: MemoryScope,
    facts: readonly Fact[],
    turns: readonly Turn[],
    meter: Meter,
  ): Observable<Reading> =>
    related$(scope, facts, turns).pipe(
      concatMap((related) => {
        const request = extractionRequest('extraction', related, turns);
        const calls = { use: [meter.layer()], metadata: { userId: scope.userId }, scheduler };
        return agent
          .call$([request.input], calls)
          .pipe(
            map((reply) => readOperations(outputOf(reply).operations, request, { secrets, ttlMs })),
          );
      }),
    );

  const apply$ = (
    scope: MemoryScope,
    facts: readonly Fact[],
    operations: readonly Operation[],
  ): Observable<Changes> =>
    defer(() => {
      const changes = changesBy(facts, operations, { now: scheduler.now(), maxFacts });
      return write$(access, scope, facts, changes, maxFacts).pipe(map(() => changes));
    });

  const batch$ = (scope: MemoryScope, turns: readonly WaitingTurn[]): Observable<ExtractionEvent> =>
    defer(() => {
      const startedAt = scheduler.now();
      const meter = createMeter(prices);
      const facts$ = factsIn$(access, scope);
      const extracted$ = defer(() =>
        facts$.pipe(
          concatMap((facts) =>
            ask$(scope, facts, turns, meter).pipe(
              concatMap(({ operations, refused }) =>
                apply$(scope, facts, operations).pipe(map((changes) => ({ changes, refused }))),
              ),
            ),
          ),
        ),
      );
      const about = () => ({
        scope,
        turns: turns.length,
        ...meter.spent(),
        ms: scheduler.now() - startedAt,
      });
      return extracted$.pipe(
        concatMap((result) => removeTurns$(access, scope, turns).pipe(map(() => result))),
        retry({
          count: attempts - 1,
          delay: (error: unknown, attempt) => {
            if (!isWorthRetrying(error)) throw error;
            return timer(retryMs * 2 ** (attempt - 1), scheduler);
          },
        }),
        map(({ changes, refused }) => extractedEvent(changes, refused, about())),
        catchError((cause: unknown) => {
          const error = asMillraceError(cause);
          const isParked = isUnusable(error);
          const parked$ = isParked ? park$(access, scope, turns) : of(undefined);
          const failed = { type: 'extractionFailed', error, isParked, ...about() } as const;
          return parked$.pipe(
            map(() => failed),
            catchError(() => of({ ...failed, isParked: false })),
          );
        }),
      );
    });

  return {
    extract$: ({ userId, withParked }) =>
      waitingTurns$(access, userId).pipe(
        concatMap((turns) =>
          from(
            batchesOf(
              userId,
              turns.filter((it) => withParked || it.isParked !== true),
              everyTurns,
            ),
          ),
        ),
        concatMap(({ scope, turns }) => batch$(scope, turns)),
        catchError((cause: unknown) =>
          of<ExtractionEvent>({
            type: 'extractionFailed',
            scope: { userId },
            turns: 0,
            error: asMillraceError(cause),
            isParked: false,
            ...nothingSpent,
            ms: 0,
          }),
        ),
      ),
    consolidate$: (scope) =>
      defer(() => {
        const startedAt = scheduler.now();
        return factsIn$(access, scope).pipe(
          concatMap((facts) => apply$(scope, facts, [])),
          map((changes) => {
            const ms = scheduler.now() - startedAt;
            return extractedEvent(changes, [], { scope, turns: 0, ...nothingSpent, ms });
          }),
        );
      }),
  };
};

type Reading = ReturnType<typeof readOperations>;

type Extracted = Extract<ExtractionEvent, { readonly type: 'memoriesExtracted' }>;

const extractedEvent = (
  { added, updated, forgotten, former }: Changes,
  refused: readonly Refusal[],
  about: Pick<Extracted, 'scope' | 'turns' | 'usage' | 'money' | 'ms'>,
): Extracted => ({
  type: 'memoriesExtracted',
  added,
  updated,
  forgotten,
  former,
  refused,
  ...about,
});

const requestMs = 120_000;

const retryMs = 1_000;

const isWorthRetrying = (error: unknown): boolean =>
  isMillraceError(error) && (error.retryable || isUnusable(error));

/** The model answered, but not as asked: the same turns may fail forever. */
const isUnusable = ({ code }: MillraceError): boolean =>
  ['invalidResponse', 'emptyAnswer', 'invalidState', 'refused', 'contextTooLong'].includes(code);

const asMillraceError = (cause: unknown): MillraceError =>
  isMillraceError(cause)
    ? cause
    : new MillraceError('memory', `Extracting memories failed: ${messageOf(cause)}`, { cause });

interface Meter {
  /** A layer for one request: it counts failed attempts, too. */
  readonly layer: () => Layer;
  readonly spent: () => ExtractionCost;
}

const createMeter = (prices: ExtractMemoriesOptions['prices']): Meter => {
  const counted = budget({
    tokens: Number.MAX_SAFE_INTEGER,
    ...(prices === undefined ? {} : { money: Number.MAX_VALUE, prices }),
  });
  return {
    layer: () => counted,
    spent: () => ({ usage: counted.spent.usage, money: counted.spent.money }),
  };
};

interface Batch {
  readonly scope: MemoryScope;
  readonly turns: readonly WaitingTurn[];
}

/** Splits turns by the scope of their facts and by size, oldest first. */
const batchesOf = (
  userId: string,
  turns: readonly WaitingTurn[],
  size: number,
): readonly Batch[] => {
  const sessions = [...new Set(turns.map(({ sessionId }) => sessionId))];
  return sessions.flatMap((sessionId) => {
    const own = turns.filter((turn) => turn.sessionId === sessionId);
    const scope: MemoryScope = sessionId === undefined ? { userId } : { userId, sessionId };
    return Array.from({ length: Math.ceil(own.length / size) }, (_, index) => ({
      scope,
      turns: own.slice(index * size, (index + 1) * size),
    }));
  });
};

/**
 * Writes in an order in which a crash loses nothing and leaves no two values: a replaced fact enters the history and
 * leaves the facts before the new one is recorded, while the turn still waits and makes the same fact again.
 */
const write$ = (
  access: Access,
  scope: MemoryScope,
  before: readonly Fact[],
  { current, added, updated, forgotten, former }: Changes,
  maxFormer: number,
): Observable<unknown> => {
  const history = { userId: scope.userId, sessionId: historySession };
  const left = new Set(current.map(({ id }) => id));
  const gone = new Set(forgotten.map(({ id }) => id));
  const removed = before.filter(({ id }) => !left.has(id) && !gone.has(id)).map(({ id }) => id);
  const known = before.filter(({ id }) => gone.has(id)).map(({ id }) => id);
  const steps = [
    record$(
      access,
      history,
      former.map((fact) => formerEntryOf(fact, scope)),
    ),
    forget$(access, scope, removed),
    known.length === 0 ? of(0) : currentFacts(access).forget$(scope, known),
    record$(access, scope, [...added, ...updated].map(entryOf)),
    former.length === 0 ? of(0) : trimHistory$(access, scope, history, maxFormer),
  ];
  return concat(...steps.map((step$) => step$.pipe(ignoreElements())), of(undefined));
};

const trimHistory$ = (
  access: Access,
  scope: MemoryScope,
  history: MemoryScope,
  max: number,
): Observable<number> =>
  formerFactsIn$(access, scope).pipe(
    concatMap((facts) => forget$(access, history, facts.slice(max).map(formerIdOf))),
  );

const removeTurns$ = (
  access: Access,
  { userId }: MemoryScope,
  turns: readonly WaitingTurn[],
): Observable<unknown> =>
  forget$(
    access,
    waitingScope(userId),
    turns.map(({ entryId }) => entryId),
  );

/** Marks turns whose extraction has failed for good. Entries never change, so others take their place. */
const park$ = (
  access: Access,
  { userId }: MemoryScope,
  turns: readonly WaitingTurn[],
): Observable<unknown> => {
  const waiting = turns.filter(({ isParked }) => isParked !== true);
  const parked = waiting.map(({ entryId: _, ...turn }) => entryOfTurn({ ...turn, isParked: true }));
  return concat(
    record$(access, waitingScope(userId), parked).pipe(ignoreElements()),
    removeTurns$(access, { userId }, waiting),
  );
};
