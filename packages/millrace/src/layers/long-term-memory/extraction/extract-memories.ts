import { addUsage } from '../../../values/usage.js';
import type { CallInfo, Reply } from '../../../values/reply.js';
import { cell } from '../../../step.js';
import type { Layer } from '../../../seams/layer.js';
import type { Message } from '../../../values/message.js';
import { MillraceError } from '../../../values/errors.js';
import type { LongTermMemory, MemoryScope } from '../long-term-memory.js';
import { insertBefore } from '../../../phases/phase-list.js';
import { phase } from '../../../seams/phase.js';
import { reasoning } from '../../../phases/reasoning.js';
import {
  checkOptions,
  having,
  isModel,
  isDelay,
  isFunction,
  isObject,
  isText,
  type Rule,
  wholeNumber,
} from '../../../values/options.js';
import {
  asyncScheduler,
  catchError,
  concatMap,
  defer,
  map,
  type Observable,
  of,
  Subject,
} from 'rxjs';
import {
  asMillraceError,
  createExtractor,
  type ExtractionCost,
  type ExtractionEvent,
  type ExtractMemoriesOptions,
  messageOf,
  nothingSpent,
} from './extractor.js';
import {
  type Access,
  checkOwner,
  currentFacts,
  type FormerFact,
  formerFactsIn$,
  record$,
} from './facts.js';
import { createQueue, type Due } from './queue.js';
import { commonSecrets, entryOfTurn, type Turn, turnMessages, waitingScope } from './turns.js';

/** A layer that extracts facts, and the facts. */
export interface MemoryExtraction extends Layer {
  /** The memory for `withLongTermMemory`: it recalls the facts that hold now, and records no whole calls. */
  readonly facts: LongTermMemory;
  /** Emits what happens in the background. Hot; completes on `close`, never errors. */
  readonly events$: Observable<ExtractionEvent>;
  /** The cost since the start. */
  readonly spent: ExtractionCost;
  /**
   * Extracts from all turns that wait, also those of calls that end meanwhile, and completes when nothing is left to do,
   * or on `close`: call it before the process ends. With a scope, also takes up turns of this user that another process
   * or a failure has left. Cold; never errors.
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
    work: extractor.extract$,
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
    consolidate$: ofOwner('consolidate$()', extractor.consolidate$),
    history$: ofOwner('history$()', (scope) => formerFactsIn$(access, scope)),
    close: queue.close,
  };
};

const ofOwner =
  <T>(owner: string, work: (scope: MemoryScope) => Observable<T>) =>
  (scope: MemoryScope): Observable<T> =>
    defer(() => {
      checkOwner(owner, scope);
      return work(scope);
    });

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

const rules: Readonly<Record<keyof ExtractMemoriesOptions, Rule>> = {
  model: isModel,
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
  admit: isFunction,
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
              const scope = scopeOf(context.info);
              checkOwner("extractMemories(): 'scope'", scope);
              const { messages: sent = call.input } = local(askedMessages);
              const { names } = call.toolkit.current;
              const turn = turnOf(context.info.callId, scope, reply, { sent, names, secrets });
              if (turn === undefined) return of(null);
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

/** Names of tools that a turn keeps. */
const maxTools = 500;

/** The new messages of the user: a call may also bring the conversation before, which has waited already. */
const statementsIn = (callId: string, messages: readonly Message[]): readonly Message[] => {
  const own = messages.filter(({ id }) => id.startsWith(`${callId}/input/`));
  return own.slice(own.findLastIndex(({ role }) => role !== 'user') + 1);
};

/** The turn that a call leaves; undefined if the user said nothing in it. */
const turnOf = (
  callId: string,
  { sessionId }: MemoryScope,
  reply: Reply,
  { sent, names, secrets }: TurnParts,
): Turn | undefined => {
  const messages = turnMessages(statementsIn(callId, sent), reply, secrets);
  if (!messages.some(({ role }) => role === 'user')) return undefined;
  return {
    callId,
    ...(sessionId === undefined ? {} : { sessionId }),
    at: reply.createdAt,
    messages,
    tools: names.slice(0, maxTools),
  };
};

interface TurnParts {
  readonly sent: readonly Message[];
  /** The names of the tools of the call. */
  readonly names: readonly string[];
  readonly secrets: readonly RegExp[];
}
