import { MillraceError, type ModelChunk, type ModelContext } from 'millrace';
import { filter, Observable, type Subscriber, Subscription, take } from 'rxjs';
import { inSentence } from './address.js';
import { AnswerEnd } from './answer-end.js';
import { createCapCounter } from './cap-counter.js';
import { damagedAnswer, decodeFrame, type Decoder, type Piece } from './decode.js';
import {
  type Exchange,
  type Receiver,
  type ResponseHead,
  type Transfer,
  type TransferInterceptor,
  transferInterceptor,
  type WireRequest,
} from './exchange.js';
import { requestIdOf } from './failure.js';
import { failureOf } from './failure-of.js';
import { createFraming, type Frame, type Framing, isSuccess } from './framing.js';
import { redactChunk } from './redact-chunk.js';
import { redactError } from './redact-error.js';
import { redactorOf } from './redactor.js';
import { createTransfer, redirectOf } from './transport.js';
import { wellFormed } from './well-formed.js';

/**
 * Sends one request and emits the chunks of its answer: text, tool calls, usage and, last, one `finish`. Content may follow
 * the vendor's first finish, and the last finish counts: it is emitted when the response ends, 50 milliseconds after the
 * server announced the end, or after a wait (see `AnswerEnd`). After a finish, a lost connection is no error, but an
 * error that the vendor reports is one; it is held like an announced end, because its usage may follow. Cold: subscribing sends, unsubscribing aborts in the same tick, and a closed
 * `context.demand` pauses the socket. Errors with a `MillraceError` without secrets.
 */
export const exchange$ = (exchange: Exchange, context: ModelContext): Observable<ModelChunk> =>
  new Observable((subscriber) => {
    const reception = new Reception(exchange, context, subscriber);
    subscriber.add(() => reception.leave());
    reception.flow();
  });

const maxRedirects = 5;

/** One request and its answer. Bytes become frames when they arrive, and frames become chunks while demand is open. */
class Reception implements Receiver {
  readonly #exchange: Exchange;
  readonly #context: ModelContext;
  readonly #subscriber: Subscriber<ModelChunk>;
  readonly #decoder: Decoder;
  readonly #count: (piece: Piece) => void;
  #isSent = false;
  #request: WireRequest | undefined;
  #redirects = 0;
  #transfer: Transfer | undefined;
  #head: ResponseHead | undefined;
  #framing: Framing | undefined;
  /** Frames that wait for demand, and how many of them have been emitted. */
  #frames: readonly Frame[] = [];
  #emitted = 0;
  #isPaused = false;
  #isFlowing = false;
  /** Whether the answer has bytes that are not UTF-8, and whether it has a tool call. */
  #isDamaged = false;
  #hasCall = false;
  readonly #end: AnswerEnd;
  /** Set once nothing more will arrive. An error of the connection is `lost`: it does not matter after a finish. */
  #ending: { readonly error?: unknown; readonly lost?: unknown } | undefined;
  #demand: Subscription | undefined;

  constructor(exchange: Exchange, context: ModelContext, subscriber: Subscriber<ModelChunk>) {
    this.#exchange = exchange;
    this.#context = context;
    this.#subscriber = subscriber;
    this.#decoder = {
      redactor: redactorOf(exchange.secrets),
      now: () => context.scheduler.now(),
      url: () => this.#request?.url,
      ...exchange,
    };
    this.#count = createCapCounter(exchange.vendor, exchange.caps);
    this.#end = new AnswerEnd(context, exchange.endings ?? { staysOpen: false }, () => {
      // While demand is closed, more may have arrived unread.
      if (this.#isOpen) this.#ending ??= {};
      this.flow();
    });
  }

  /** Sends the request, and emits what has arrived, while demand is open. Returns whether to read on. */
  flow(): boolean {
    // An observer may close demand and open it again.
    if (this.#isFlowing) return false;
    if (!this.#isSent && this.#context.demand.isOpen) this.#send();
    this.#isFlowing = true;
    this.#emit();
    this.#isFlowing = false;
    if (this.#subscriber.closed) return false;
    const isOpen = this.#isOpen;
    const isOver = this.#ending !== undefined && this.#frames.length === 0;
    if (isOver && (isOpen || this.#end.finish === undefined)) this.#conclude(this.#ending);
    else if (!isOpen) this.#awaitDemand();
    else {
      this.#end.watch();
      return true;
    }
    return false;
  }

  /** After a failure, only usage follows, which needs no demand. */
  get #isOpen(): boolean {
    return this.#context.demand.isOpen || this.#end.failure !== undefined;
  }

  leave(): void {
    this.#demand?.unsubscribe();
    this.#end.pause();
    this.#transfer?.abort();
  }

  head(head: ResponseHead): void {
    const { vendor, caps } = this.#exchange;
    const request = this.#request;
    const url = redirectOf(head, request?.url ?? '');
    if (request !== undefined && url !== undefined && this.#redirects < maxRedirects) {
      this.#redirects += 1;
      this.#transfer?.abort();
      this.#start({ ...request, url });
    } else {
      this.#head = head;
      this.#framing = createFraming({ vendor, head, caps });
    }
  }

  bytes(bytes: Uint8Array): boolean {
    this.#add(this.#framing?.push(bytes) ?? []);
    this.#isPaused = !this.flow();
    const on = this.#subscriber.closed ? undefined : this.#exchange.working?.();
    if (on !== undefined) this.#context.working?.(on);
    return !this.#isPaused;
  }

  end(): void {
    this.#transfer = undefined;
    this.#end.ended();
    this.#add(this.#framing?.end() ?? []);
    this.#ending ??= {};
    this.flow();
  }

  fail(error: unknown): void {
    // The start of an error is more useful than the error of its connection.
    if (this.#head !== undefined && !isSuccess(this.#head)) this.end();
    this.#ending ??= { lost: error };
    this.flow();
  }

  #send(): void {
    this.#isSent = true;
    try {
      const request = this.#exchange.request();
      if ('url' in request) this.#start(request);
      else {
        request
          .then((built) => this.#start(built))
          .then(undefined, (error: unknown) => this.fail(error));
      }
    } catch (error) {
      this.fail(error);
    }
  }

  #start({ url, headers, body }: WireRequest): void {
    if (this.#subscriber.closed) return;
    const request = { url, headers, body: wellFormed(body) };
    this.#request = request;
    const { fetch } = this.#exchange;
    const context: ModelContext & { readonly [transferInterceptor]?: TransferInterceptor } =
      this.#context;
    const intercept = context[transferInterceptor];
    this.#transfer =
      intercept === undefined
        ? createTransfer(request, this, fetch)
        : intercept(
            request,
            this,
            (receiver) => createTransfer(request, receiver, fetch),
            this.#decoder.redactor.error,
          );
    this.#transfer.start();
  }

  #add(frames: readonly Frame[]): void {
    this.#frames = this.#frames.length === 0 ? frames : [...this.#frames, ...frames];
  }

  #emit(): void {
    try {
      while (this.#isOpen && !this.#subscriber.closed) {
        const frame = this.#frames[this.#emitted];
        if (frame === undefined) break;
        this.#emitted += 1;
        this.#take(decodeFrame(this.#decoder, frame), frame);
      }
    } catch (error) {
      this.#ending = this.#end.isComplete ? {} : { error };
      this.#emitted = this.#frames.length;
    }
    if (this.#emitted < this.#frames.length) return;
    this.#frames = [];
    this.#emitted = 0;
  }

  #take(pieces: readonly Piece[], frame: Frame): void {
    const isComplete = this.#end.isComplete;
    if (!isComplete) this.#checkBytes(pieces, frame);
    for (const piece of pieces) {
      if (piece.type === 'failed') {
        const isFinished = isComplete && this.#end.failure === undefined;
        if (isFinished || frame.type !== 'event') throw piece.error;
        continue;
      }
      this.#count(piece);
      if (piece.type === 'done' || piece.type === 'finish') continue;
      if (isComplete && piece.type !== 'usage') continue;
      this.#subscriber.next(redactChunk(piece, this.#decoder.redactor.answer));
    }
    if (!isComplete) this.#end.note(pieces);
  }

  /**
   * Damage may be in arguments, or in what holds them: the name of a field, or an event that is ignored because of it. Text may also
   * hold a tool call, which others read.
   */
  #checkBytes(pieces: readonly Piece[], frame: Frame): void {
    const isNew = 'isDamaged' in frame && frame.isDamaged && !this.#isDamaged;
    this.#isDamaged ||= isNew;
    this.#hasCall ||= pieces.some(({ type }) => type === 'toolCall');
    if (this.#isDamaged && this.#hasCall) throw damagedAnswer(this.#exchange.vendor);
    if (isNew) this.#subscriber.next({ type: 'text', text: '', isDamaged: true });
  }

  #awaitDemand(): void {
    this.#end.pause();
    if (this.#demand !== undefined) return;
    const isOpen$ = this.#context.demand.open$.pipe(
      filter((isOpen) => isOpen),
      take(1),
    );
    this.#demand = new Subscription();
    this.#demand.add(
      isOpen$.subscribe({
        next: () => {
          // Demand may close again while this flows.
          this.#demand = undefined;
          if (this.flow() && this.#isPaused) this.#resume();
        },
        error: (error: unknown) => this.fail(error),
      }),
    );
  }

  #resume(): void {
    this.#isPaused = false;
    this.#transfer?.resume();
  }

  #conclude({ error, lost }: { readonly error?: unknown; readonly lost?: unknown } = {}): void {
    const { finish, failure = error } = this.#end;
    if (failure !== undefined || finish === undefined) {
      this.#subscriber.error(this.#errorFrom(failure ?? lost ?? incomplete(this.#exchange.vendor)));
    } else {
      this.#subscriber.next(finish);
      this.#subscriber.complete();
    }
  }

  #errorFrom(thrown: unknown): MillraceError {
    const { vendor, redactor } = this.#decoder;
    const error = failureOf(vendor, thrown, { clean: redactor.error, url: this.#request?.url });
    return redactError(error, redactor, requestIdOf(this.#head?.headers));
  }
}

const incomplete = (vendor: string): MillraceError =>
  new MillraceError(
    'invalidResponse',
    `The answer from ${inSentence(vendor)} is incomplete: its stream ended without a finish reason.`,
    { retryable: true },
  );
