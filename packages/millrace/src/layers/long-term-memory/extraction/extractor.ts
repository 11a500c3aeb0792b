import type { CallInfo } from '../../../values/reply.js';
import { createAgent } from '../../../agent.js';
import { isMillraceError, MillraceError } from '../../../values/errors.js';
import type { Layer } from '../../../seams/layer.js';
import type { Model } from '../../../models/model.js';
import { noUsage, type Usage } from '../../../values/usage.js';
import { output, outputOf } from '../../output.js';
import type { LongTermMemory, MemoryScope } from '../long-term-memory.js';
import { budget } from '../../traffic/budget.js';
import type { PriceTable } from '../../traffic/prices.js';
import {
  catchError,
  concatMap,
  defaultIfEmpty,
  defer,
  from,
  map,
  type Observable,
  type ObservableInput,
  of,
  retry,
  type SchedulerLike,
  take,
  timer,
  toArray,
} from 'rxjs';
import { changesBy, type Changes, type Operation } from './changes.js';
import { type Access, type Fact, factsIn$, type FormerFact, inTime } from './facts.js';
import {
  extractionRequest,
  type FactCandidate,
  instructions as basicInstructions,
  notAdmitted,
  operationsSchema,
  type Reading,
  readOperations,
  type Refusal,
} from './operations.js';
import type { Due } from './queue.js';
import { type WaitingTurn, waitingTurns$ } from './turns.js';
import { park$, removeTurns$, stillWaiting$, write$ } from './write-changes.js';

/** Options of `extractMemories`. */
export interface ExtractMemoriesOptions {
  /** The model that extracts facts. A small one is enough. */
  readonly model: Model;
  /** The memory that persists facts, such as `store.longTermMemory`. */
  readonly memory: LongTermMemory;
  /** The owner of the facts of a call: a user, or one session. Default: `metadata.userId`. */
  readonly scope?: ((call: CallInfo) => MemoryScope) | undefined;
  /** Extracts after the user has been quiet this long, in milliseconds. Default: 30,000. */
  readonly quietMs?: number | undefined;
  /** Extracts earlier if this many calls wait. Also the maximum number of calls per request. Default: 5. */
  readonly everyTurns?: number | undefined;
  /** Maximum number of related facts that the model is shown. Default: 20. */
  readonly candidates?: number | undefined;
  /** Maximum number of facts per user or session; evicts the oldest. The history keeps as many. Default: 200. */
  readonly maxFacts?: number | undefined;
  /** When facts expire, in milliseconds, unless the model finds a time. Default: never. */
  readonly ttlMs?: number | undefined;
  /** Patterns of text that is never stored, in addition to keys, passwords, and numbers of cards and accounts. */
  readonly secrets?: readonly RegExp[] | undefined;
  /**
   * Decides on each fact that the user's words support. Default: all are stored but those with a `doubt`, which give a
   * permission or an order, or name a tool. If it errors, nothing is stored, and the turns wait.
   */
  // eslint-disable-next-line rxjs-x/finnish -- Named as callbacks are.
  readonly admit?: ((fact: FactCandidate) => boolean | ObservableInput<boolean>) | undefined;
  /** Instructions on what matters to your program, added to the prompt. Default: none. */
  readonly instructions?: string | undefined;
  /** Layers of the extracting agent, such as a `sharedBudget` that also counts calls. Default: none. */
  readonly use?: readonly (Layer | readonly Layer[])[] | undefined;
  /** Prices per million tokens, by model, for `money`. Default: none. */
  readonly prices?: PriceTable | undefined;
  /** Maximum number of users whose turns are extracted at the same time. Default: 4. */
  readonly concurrency?: number | undefined;
  /** Attempts to extract before the turns are left for later. Default: 3. */
  readonly attempts?: number | undefined;
  /** Timeout of each operation of the memory, in milliseconds. Default: 5,000. */
  readonly timeoutMs?: number | undefined;
  /** The scheduler of all waits in the background, and the clock. Default: RxJS's `asyncScheduler`. */
  readonly scheduler?: SchedulerLike | undefined;
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

export const nothingSpent: ExtractionCost = { usage: noUsage, money: 0 };

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message || error.name : String(error);

interface Extractor {
  /** Extracts the turns of a user that wait, and emits an event for each batch. Never errors. */
  readonly extract$: (due: Due) => Observable<ExtractionEvent>;
  readonly consolidate$: (scope: MemoryScope) => Observable<ExtractionEvent>;
}

/** The part of the options that extracting turns needs. */
interface Extraction {
  readonly options: ExtractMemoriesOptions;
  readonly agent: ReturnType<typeof extractionAgent>;
  readonly access: Access;
  readonly secrets: readonly RegExp[];
}

export const createExtractor = (
  options: ExtractMemoriesOptions,
  access: Access,
  secrets: readonly RegExp[],
): Extractor => {
  const { everyTurns = 5 } = options;
  const extraction: Extraction = { options, agent: extractionAgent(options), access, secrets };
  return {
    extract$: ({ userId, withParked }) =>
      waitingTurns$(access, userId).pipe(
        concatMap((turns) => {
          const due = turns.filter((it) => withParked || it.isParked !== true);
          return from(batchesOf(userId, due, everyTurns));
        }),
        concatMap((batch) => batch$(extraction, batch)),
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
        const startedAt = access.scheduler.now();
        return apply$(extraction, scope, []).pipe(
          map((changes) => {
            const ms = access.scheduler.now() - startedAt;
            return extractedEvent(changes, [], { scope, turns: 0, ...nothingSpent, ms });
          }),
        );
      }),
  };
};

const extractionAgent = ({ model, use = [], instructions = '' }: ExtractMemoriesOptions) =>
  createAgent({
    name: 'extractMemories',
    model,
    instructions: [basicInstructions, instructions].join('\n\n').trim(),
    // A model that hangs must not keep the place of other users.
    limits: { timeouts: { callMs: requestMs } },
    use: [...use, output(operationsSchema())],
  });

/** Extracts the turns of a batch, and removes them. */
const batch$ = (extraction: Extraction, batch: Batch): Observable<ExtractionEvent> =>
  defer(() => {
    const { access, options } = extraction;
    const { scheduler } = access;
    const { scope, turns } = batch;
    const startedAt = scheduler.now();
    const meter = createMeter(options.prices);
    const about = () => ({
      scope,
      turns: turns.length,
      ...meter.spent(),
      ms: scheduler.now() - startedAt,
    });
    return extracted$(extraction, batch, meter).pipe(
      concatMap((result) => removeTurns$(access, scope, turns).pipe(map(() => result))),
      retry({
        count: (options.attempts ?? 3) - 1,
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

const extracted$ = (
  extraction: Extraction,
  batch: Batch,
  meter: Meter,
): Observable<{ readonly changes: Changes; readonly refused: readonly Refusal[] }> =>
  defer(() => factsIn$(extraction.access, batch.scope)).pipe(
    concatMap((facts) => related$(extraction, batch, facts)),
    concatMap((related) => ask$(extraction, batch, related, meter)),
    concatMap(({ operations, refused }) =>
      apply$(extraction, batch.scope, operations).pipe(map((changes) => ({ changes, refused }))),
    ),
  );

/** The facts that the model may change: all of them if they are few, otherwise those that a search finds. */
const related$ = (
  { access, options: { candidates = 20 } }: Extraction,
  { scope, turns }: Batch,
  facts: readonly Fact[],
): Observable<readonly Fact[]> => {
  if (facts.length <= candidates) return of(facts);
  const text = turns.flatMap(({ messages }) => messages.map((it) => it.text)).join('\n');
  const known = new Map(facts.map((fact) => [fact.id, fact]));
  return access.memory.recall$(scope, { text, limit: 2 * candidates }).pipe(
    inTime(access),
    map((found) => found.flatMap(({ id }) => known.get(id) ?? []).slice(0, candidates)),
  );
};

/** Asks the model which facts the turns change, as far as the program admits it, and the turns still wait. */
const ask$ = (
  { agent, access, options, secrets }: Extraction,
  { scope, turns }: Batch,
  related: readonly Fact[],
  meter: Meter,
): Observable<Admitted> =>
  defer(() => {
    const { ttlMs, admit = ({ doubt }) => doubt === undefined } = options;
    const request = extractionRequest('extraction', related, turns);
    const metadata = { userId: scope.userId };
    const calls = { use: [meter.layer()], metadata, scheduler: access.scheduler };
    return agent.call$([request.input], calls).pipe(
      concatMap((reply) =>
        stillWaiting$(access, scope, turns).pipe(
          concatMap((left) => {
            const ids = new Set(left.flatMap(({ messages }) => messages.map(({ id }) => id)));
            const messages = new Map([...request.messages].filter(([, { id }]) => ids.has(id)));
            const { operations } = outputOf(reply);
            const shown = { ...request, messages };
            return admitted$(readOperations(operations, shown, { secrets, ttlMs }), scope, admit);
          }),
        ),
      ),
    );
  });

/** Reads the facts again: they may have changed while the model answered. */
const apply$ = (
  { access, options: { maxFacts = 200 } }: Extraction,
  scope: MemoryScope,
  operations: readonly Operation[],
): Observable<Changes> =>
  factsIn$(access, scope).pipe(
    concatMap((facts) => {
      const changes = changesBy(facts, operations, { now: access.scheduler.now(), maxFacts });
      return write$(access, scope, facts, changes, maxFacts).pipe(map(() => changes));
    }),
  );

interface Admitted {
  readonly operations: readonly Operation[];
  readonly refused: readonly Refusal[];
}

/** Asks the program about one fact after another. */
const admitted$ = (
  { candidates, refused }: Reading,
  scope: MemoryScope,
  admit: NonNullable<ExtractMemoriesOptions['admit']>,
): Observable<Admitted> =>
  from(candidates).pipe(
    concatMap((candidate) =>
      defer(() => {
        const answer = admit({ ...candidate.about, scope });
        return typeof answer === 'boolean' ? of(answer) : answer;
      }).pipe(
        take(1),
        defaultIfEmpty(false),
        map((answer: unknown) => ({ candidate, isAdmitted: answer === true })),
      ),
    ),
    toArray(),
    map((decided) => ({
      operations: decided.flatMap((it) => (it.isAdmitted ? [it.candidate.operation] : [])),
      refused: [
        ...refused,
        ...decided.flatMap((it) => (it.isAdmitted ? [] : [notAdmitted(it.candidate)])),
      ],
    })),
  );

type Extracted = Extract<ExtractionEvent, { readonly type: 'memoriesExtracted' }>;

const extractedEvent = (
  { current: _, ...changes }: Changes,
  refused: readonly Refusal[],
  about: Pick<Extracted, 'scope' | 'turns' | 'usage' | 'money' | 'ms'>,
): Extracted => ({ type: 'memoriesExtracted', ...changes, refused, ...about });

const requestMs = 120_000;

const retryMs = 1_000;

const isWorthRetrying = (error: unknown): boolean =>
  isMillraceError(error) && (error.retryable || isUnusable(error));

/** The model answered, but not as asked: the same turns may fail forever. */
const isUnusable = ({ code }: MillraceError): boolean =>
  ['invalidResponse', 'emptyAnswer', 'invalidState', 'refused', 'contextTooLong'].includes(code);

export const asMillraceError = (cause: unknown): MillraceError =>
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
