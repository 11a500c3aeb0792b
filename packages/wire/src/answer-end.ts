import type { MillraceError, ModelChunk, ModelContext } from 'millrace';
import type { Subscription } from 'rxjs';
import type { Piece } from './decode.js';
import type { Endings } from './exchange.js';

/** The content of one event. */
interface Noted {
  readonly hasContent: boolean;
  readonly hasCall: boolean;
  readonly hasFinish: boolean;
  /** The server announced the end for the first time. */
  readonly isAnnounced: boolean;
}

type FinishChunk = Extract<ModelChunk, { readonly type: 'finish' }>;

/** How long to wait for more after a finish, in milliseconds. */
const waits = {
  /** Servers that end their responses send the rest, such as usage, immediately. */
  rest: { ends: 2_000, staysOpen: 200 },
  /** Some servers send a finish reason next to each tool call, as soon as the model has written it. */
  nextCall: { ends: 10_000, staysOpen: 2_000 },
};

/**
 * How long a server may take to end its response after it announced the end or reported an error, in milliseconds. If it does,
 * the socket is reused.
 */
const announcedMs = 50;

/**
 * Holds the finish of an answer until its response ends, because content may follow: the last finish counts. Limits how
 * long the end may take, on the scheduler of the context, while `watch` was called last and not `pause`.
 */
export class AnswerEnd {
  readonly #context: Pick<ModelContext, 'demand' | 'scheduler' | 'timeouts'>;
  readonly #endings: Endings;
  readonly #onLimit: () => void;
  #finish: FinishChunk | undefined;
  #failure: MillraceError | undefined;
  #isAnnounced = false;
  /** When the last content arrived, and until when to wait. */
  #contentAt: number;
  /** Whether there was content since then: the time is read once for all events that arrive together. */
  #hasMore = false;
  #waitMs: number | undefined;
  #until: number | undefined;
  #timer: Subscription | undefined;

  constructor(
    context: Pick<ModelContext, 'demand' | 'scheduler' | 'timeouts'>,
    endings: Endings,
    onLimit: () => void,
  ) {
    this.#context = context;
    this.#endings = endings;
    this.#onLimit = onLimit;
    this.#contentAt = context.scheduler.now();
  }

  get finish(): FinishChunk | undefined {
    return this.#finish;
  }

  /** The failure that an event reported first. */
  get failure(): MillraceError | undefined {
    return this.#failure;
  }

  /** Whether there is a finish or a failure, and nothing but usage may follow. */
  get isComplete(): boolean {
    return this.#isAnnounced && (this.#finish ?? this.#failure) !== undefined;
  }

  /** Notes what one event of the answer contains, and holds its finish, or its failure: then, its usage may follow, and nothing else. */
  note(pieces: readonly Piece[]): void {
    let hasContent = false;
    let hasCall = false;
    let hasFinish = false;
    let isAnnounced = false;
    for (const piece of pieces) {
      if (piece.type === 'failed') {
        this.#failure ??= piece.error;
        isAnnounced = true;
      } else if (piece.type === 'done') isAnnounced = !this.#isAnnounced;
      else if (piece.type === 'finish') {
        hasFinish = true;
        this.#finish = piece;
      } else {
        hasContent ||= !silent.has(piece.type);
        hasCall ||= piece.type === 'toolCall';
      }
    }
    if (hasContent) this.#hasMore = true;
    if ((this.#finish ?? this.#failure) === undefined) this.#isAnnounced ||= isAnnounced;
    else this.#limit({ hasContent, hasCall, hasFinish, isAnnounced });
  }

  ended(): void {
    this.#endings.staysOpen = false;
  }

  watch(): void {
    this.#readTime();
    const result = this.#finish ?? this.#failure;
    if (result === undefined || this.#waitMs === undefined || this.#timer !== undefined) return;
    const { scheduler } = this.#context;
    this.#until ??= scheduler.now() + this.#waitMs;
    this.#timer = scheduler.schedule(
      () => {
        this.pause();
        if (this.#context.demand.isOpen) this.#endings.staysOpen = !this.#isAnnounced;
        this.#onLimit();
      },
      Math.max(0, this.#until - scheduler.now()),
    );
  }

  /** Stops the time. The wait starts again with the next `watch`. */
  pause(): void {
    this.#readTime();
    this.#stop();
    this.#until = undefined;
  }

  #readTime(): void {
    if (this.#hasMore) this.#contentAt = this.#context.scheduler.now();
    this.#hasMore = false;
  }

  #limit({ hasContent, hasCall, hasFinish, isAnnounced }: Noted): void {
    if (hasContent) this.#wait(this.#limitOf(hasCall ? waits.nextCall : waits.rest), false);
    else if (hasFinish) this.#wait(this.#limitOf(waits.rest), true);
    if (!isAnnounced) return;
    this.#isAnnounced = true;
    this.#endings.staysOpen = false;
    this.#wait(announcedMs, true);
  }

  /** The idle limit of the model must not turn a finished answer into an error. */
  #limitOf({ ends, staysOpen }: (typeof waits)['rest']): number {
    this.#readTime();
    const ms = this.#endings.staysOpen ? staysOpen : ends;
    const { scheduler, timeouts: { chunkMs = Infinity } = {} } = this.#context;
    const left = chunkMs - (scheduler.now() - this.#contentAt) - 1;
    return Math.max(0, Math.min(ms, left));
  }

  /** Waits from now on; `isEarlier` only if that ends before the current wait. */
  #wait(ms: number, isEarlier: boolean): void {
    const until = this.#context.scheduler.now() + ms;
    if (isEarlier && this.#until !== undefined && this.#until <= until) return;
    this.#stop();
    this.#waitMs = ms;
    this.#until = until;
  }

  #stop(): void {
    this.#timer?.unsubscribe();
    this.#timer = undefined;
  }
}

/** Types of chunks that are not content. */
const silent: ReadonlySet<string> = new Set(['usage', 'facts', 'finish', 'restart', 'textStart']);
