import { MillraceError } from '../../../values/errors.js';
import {
  checkScope,
  type LongTermMemory,
  type MemoryEntry,
  type MemoryScope,
  type NewMemory,
} from '../long-term-memory.js';
import { isRecord, parsedJson } from '../../../values/json.js';
import {
  concatMap,
  defaultIfEmpty,
  defer,
  forkJoin,
  map,
  type MonoTypeOperatorFunction,
  type Observable,
  of,
  type SchedulerLike,
  take,
  throwError,
  timeout,
} from 'rxjs';

/** A fact about a user that holds now. */
export interface Fact {
  readonly id: string;
  readonly text: string;
  /** The person or thing that the fact is about. Default: `user`. */
  readonly subject: string;
  /** The property that has one value at a time, such as `home city`. Absent for facts that replace no other. */
  readonly attribute?: string;
  /** The facts that replace each other share a chain, which has one current fact. */
  readonly chain: string;
  /** When the user stated it, in milliseconds since the epoch. */
  readonly validFrom: number;
  /** When it stops to hold, in milliseconds since the epoch. Absent: never. */
  readonly expiresAt?: number;
  /** The ids of the messages of the user that state it. */
  readonly sources: readonly string[];
  /** The words of the user that state it. Absent for facts that a program or a tool has recorded. */
  readonly quote?: string;
  /** The reason that the model gave. */
  readonly reason: string;
}

/** A fact that no longer holds. It is never recalled. */
export interface FormerFact extends Fact {
  /** When it was replaced or dropped, in milliseconds since the epoch. */
  readonly validUntil: number;
  readonly why: 'updated' | 'merged' | 'expired' | 'evicted';
  /** The id of the fact that replaced it. Absent if it was dropped. */
  readonly supersededBy?: string;
}

/** How the stored memories of users are accessed. */
export interface Access {
  readonly memory: LongTermMemory;
  readonly scheduler: SchedulerLike;
  readonly timeoutMs: number;
}

/**
 * Former facts and turns that wait are entries of sessions with these ids: a recall of the user does not see them, and
 * they are deleted with the user.
 */
export const historySession = 'millrace:history';
export const waitingSession = 'millrace:waiting';

export const checkOwner = (owner: string, scope: MemoryScope): void => {
  checkScope(owner, scope);
  if (scope.sessionId !== historySession && scope.sessionId !== waitingSession) return;
  throw new MillraceError(
    'config',
    `${owner}: session ids that start with 'millrace:' are reserved.`,
  );
};

/** More entries than a user has. A blank search lists the latest ones. */
const maxListed = 10_000;

/** Emits all entries of exactly this scope, newest first. */
export const entriesIn$ = (
  { memory, ...access }: Access,
  scope: MemoryScope,
): Observable<readonly MemoryEntry[]> =>
  defer(() => memory.recall$(scope, { text: '', limit: maxListed })).pipe(
    inTime(access),
    map((entries) => entries.filter((entry) => isIn(entry, scope))),
    defaultIfEmpty([]),
  );

const isIn = ({ scope: entryScope }: MemoryEntry, { userId, sessionId }: MemoryScope): boolean =>
  entryScope.userId === userId && entryScope.sessionId === sessionId;

export const record$ = (
  { memory, ...access }: Access,
  scope: MemoryScope,
  memories: readonly NewMemory[],
): Observable<unknown> =>
  memories.length === 0
    ? of(undefined)
    : defer(() => memory.record$(scope, memories)).pipe(inTime(access), defaultIfEmpty(undefined));

/** Deletes entries of a scope. The scope of a session includes that of its user, so ids must be unique among both. */
export const forget$ = (
  { memory, ...access }: Access,
  scope: MemoryScope,
  ids: readonly string[],
): Observable<number> =>
  ids.length === 0
    ? of(0)
    : defer(() => memory.forget$(scope, ids)).pipe(inTime(access), defaultIfEmpty(0));

export const inTime =
  <T>({ scheduler, timeoutMs }: Omit<Access, 'memory'>): MonoTypeOperatorFunction<T> =>
  (source) =>
    source.pipe(
      take(1),
      timeout({
        first: timeoutMs,
        scheduler,
        with: () =>
          throwError(
            () =>
              new MillraceError(
                'memory',
                `The memory did not respond within ${timeoutMs} ms ('timeoutMs').`,
                { retryable: true },
              ),
          ),
      }),
    );

/** Emits the facts that hold now in exactly this scope, newest first. */
export const factsIn$ = (access: Access, scope: MemoryScope): Observable<readonly Fact[]> =>
  entriesIn$(access, scope).pipe(map((entries) => entries.filter(isFact).map(factOf)));

/** Emits the former facts of a scope, latest first. */
export const formerFactsIn$ = (
  access: Access,
  { userId, sessionId }: MemoryScope,
): Observable<readonly FormerFact[]> =>
  entriesIn$(access, { userId, sessionId: historySession }).pipe(
    map((entries) =>
      entries
        .filter(({ metadata }) => metadata['sessionId'] === sessionId)
        .flatMap(formerFactOf)
        .sort((a, b) => b.validUntil - a.validUntil),
    ),
  );

/** Kinds that agents record of whole calls: extraction replaces them. */
const kindsOfCalls: readonly string[] = ['conversation', 'toolCall'];

export const isFact = ({ kind }: Pick<NewMemory, 'kind'>): boolean =>
  kind === undefined || !kindsOfCalls.includes(kind);

/** Also reads entries that a program or a tool has recorded. */
export const factOf = ({ id, text, createdAt, metadata }: MemoryEntry): Fact => {
  const { subject = 'user', attribute, chain = id, quote, reason = '' } = metadata;
  const expiresAt = Number(metadata['expiresAt'] ?? NaN);
  return {
    id,
    text,
    subject,
    ...(attribute === undefined ? {} : { attribute }),
    chain,
    validFrom: createdAt,
    ...(Number.isFinite(expiresAt) ? { expiresAt } : {}),
    sources: stringsIn(metadata['sources']),
    ...(quote === undefined ? {} : { quote }),
    reason,
  };
};

const stringsIn = (json: string | undefined): readonly string[] => {
  const value = json === undefined ? undefined : parsedJson(json);
  return Array.isArray(value) ? value.filter((it) => typeof it === 'string') : [];
};

export const entryOf = (fact: Fact): NewMemory => {
  const { id, text, subject, attribute, chain, validFrom, expiresAt, sources, quote, reason } =
    fact;
  return {
    id,
    text,
    kind: 'fact',
    createdAt: validFrom,
    metadata: {
      subject,
      chain,
      reason,
      sources: JSON.stringify(sources),
      ...(quote === undefined ? {} : { quote, statedBy: 'user' }),
      ...(attribute === undefined ? {} : { attribute }),
      ...(expiresAt === undefined ? {} : { expiresAt: String(expiresAt) }),
    },
  };
};

/** The text has the id, as a memory records no text twice and a user may return to an earlier city. */
export const formerEntryOf = (fact: FormerFact, { sessionId }: MemoryScope): NewMemory => ({
  id: formerIdOf(fact),
  text: `${fact.text} (${fact.id})`,
  kind: 'formerFact',
  createdAt: fact.validUntil,
  metadata: {
    chain: fact.chain,
    fact: JSON.stringify(fact),
    ...(sessionId === undefined ? {} : { sessionId }),
  },
});

export const formerIdOf = ({ id }: Fact): string => `former/${id}`;

const formerFactOf = ({ metadata }: MemoryEntry): readonly FormerFact[] => {
  const value = parsedJson(metadata['fact'] ?? '');
  return isFormerFact(value) ? [value] : [];
};

/** Checks only some fields, as this package wrote the rest. */
const isFormerFact = (value: unknown): value is FormerFact =>
  isRecord(value) &&
  ['id', 'text', 'chain', 'why'].every((name) => typeof value[name] === 'string') &&
  ['validFrom', 'validUntil'].every((name) => typeof value[name] === 'number');

/** Entries that expire or lose to a newer one of their chain leave gaps in a result. */
const spare = 20;

/**
 * A view of a memory for agents: recalls the facts that hold now, records no whole calls, and forgets facts together
 * with their history.
 */
export const currentFacts = (access: Access): LongTermMemory => {
  const { memory, scheduler } = access;
  return {
    record$: (scope, memories) =>
      defer(() => {
        checkOwner('record$()', scope);
        return memory.record$(scope, memories.filter(isFact));
      }),
    recall$: (scope, query) =>
      defer(() => {
        checkOwner('recall$()', scope);
        const { limit = 5 } = query;
        return memory
          .recall$(scope, { ...query, limit: limit + spare })
          .pipe(map((found) => currentAmong(found, scheduler.now()).slice(0, limit)));
      }),
    forget$: (scope, which) =>
      defer(() => {
        checkOwner('forget$()', scope);
        return which === 'all' && scope.sessionId === undefined
          ? memory.forget$(scope, 'all')
          : forgetWithHistory$(access, scope, which);
      }),
  };
};

const currentAmong = <Entry extends MemoryEntry>(
  entries: readonly Entry[],
  now: number,
): readonly Entry[] => {
  const facts = entries.map((entry) => ({ entry, fact: factOf(entry) }));
  return facts
    .filter(
      ({ entry, fact }) =>
        isFact(entry) &&
        (fact.expiresAt ?? Infinity) > now &&
        !facts.some((it) => replaces(it, { entry, fact })),
    )
    .map(({ entry }) => entry);
};

interface Found {
  readonly entry: MemoryEntry;
  readonly fact: Fact;
}

/** Two processes may both replace a fact; until the next extraction, the newest one counts. */
const replaces = (a: Found, b: Found): boolean =>
  a.fact.chain === b.fact.chain &&
  isIn(a.entry, b.entry.scope) &&
  (a.fact.validFrom > b.fact.validFrom ||
    (a.fact.validFrom === b.fact.validFrom && a.fact.id > b.fact.id));

/** Deletes facts, the history of their chains and, of a whole session, the turns that wait. */
const forgetWithHistory$ = (
  access: Access,
  scope: MemoryScope,
  which: readonly string[] | 'all',
): Observable<number> => {
  const { userId, sessionId } = scope;
  const reserved = [historySession, waitingSession].map((id) => ({ userId, sessionId: id }));
  const scopes = sessionId === undefined ? [scope] : [scope, { userId }];
  const chains$ = forkJoin(
    scopes.map((each) =>
      factsIn$(access, each).pipe(
        map((facts) => facts.filter(({ id }) => which !== 'all' && which.includes(id))),
        map((facts) => facts.map(({ chain }) => chainIn(each.sessionId, chain))),
      ),
    ),
  ).pipe(map((chains) => new Set(chains.flat())));
  const hasEnded = ({ metadata }: MemoryEntry, chains: ReadonlySet<string>): boolean =>
    which === 'all'
      ? metadata['sessionId'] === sessionId
      : chains.has(chainIn(metadata['sessionId'], metadata['chain']));
  return chains$.pipe(
    concatMap((chains) =>
      forkJoin(
        reserved.map((each) =>
          entriesIn$(access, each).pipe(
            map((entries) => entries.filter((entry) => hasEnded(entry, chains))),
            concatMap((entries) =>
              forget$(
                access,
                each,
                entries.map(({ id }) => id),
              ),
            ),
          ),
        ),
      ),
    ),
    concatMap(() => access.memory.forget$(scope, which).pipe(inTime(access))),
  );
};

const chainIn = (sessionId: string | undefined, chain: string | undefined): string =>
  JSON.stringify([sessionId, chain]);
