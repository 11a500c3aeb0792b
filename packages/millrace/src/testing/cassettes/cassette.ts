import { defer, Observable, type Subscription, tap } from 'rxjs';
import { type Patterns, readPatterns } from '../../layers/interceptors/patterns.js';
import type {
  Model,
  ModelChunk,
  ModelContext,
  ModelReport,
  ModelRequest,
} from '../../models/model.js';
import { aroundModel } from '../../models/around-model.js';
import { checkModel } from '../../models/timeouts.js';
import { fatal, isMillraceError, messageOf, MillraceError, misuse } from '../../values/errors.js';
import { checkOptions, isFunction, oneOf, type Rule } from '../../values/options.js';
import type { ScriptedModel } from '../scripted-model.js';
import { diffOf, linesOf, similarity, stableRequest, withStableIds } from './compare.js';
import { type End, isReadable, isRequest, type Recording, storedAnswer } from './file.js';
import { cleanJson, createRedaction, type Redaction, replacing } from './redaction.js';
import { type CassetteMode, openTape, type RecordingTape, type ReplayingTape } from './tape.js';

export interface CassetteOptions {
  /**
   * `record` asks the model and overwrites the file; `replay` never asks it; `auto` replays if the file exists, and
   * otherwise records, unless the variable `CI` is set. Default: the variable `MILLRACE_CASSETTES`, else `auto`.
   */
  readonly mode?: CassetteMode | undefined;
  /** How many times faster than recorded to replay: 1 for the recorded delays. Default: `Infinity`, without delays. */
  readonly speed?: number | undefined;
  /** Secrets to remove from the file, beside keys and tokens of known shapes: words, or regular expressions. */
  readonly redact?: Patterns | undefined;
  /** Strings that may differ between a request and its recording, such as dates: words, or regular expressions. */
  readonly ignore?: Patterns | undefined;
  /** Changes what is compared of a request and of its recording, for example by dropping an option. */
  readonly normalize?: ((request: ModelRequest) => ModelRequest) | undefined;
}

/**
 * Wraps a model for tests: records its requests, chunks, delays, errors and reports to a file, and replays them from then
 * on without asking it. Give the path from the working directory, or a `URL`.
 *
 * A replayed request must equal a recording that has not been played, in any order. Otherwise the call fails with
 * `invalidRequest`, and the message shows the difference. Random ids may differ: those of messages, tool calls and calls,
 * and UUIDs. Delays run on the scheduler of the call, so `marbles` replays them in virtual time; closed demand pauses
 * them. If the recorded consumer cancelled and this one does not, the stream errors.
 *
 * The file is written whenever a request ends, without secrets; errors of missing and refused keys are not recorded.
 * During replay, cassettes of the same file share its recordings if they are created before the first request. A later
 * one starts at the first recording again, even after a test that failed. While recording, they add to the file until
 * `verify()` is called, which throws during replay if recordings are left, or if a request differed. Throws `config` if
 * the file is missing and must not be recorded, or if it is damaged.
 *
 * @example
 * ```ts
 * const model = cassette('fixtures/weather.json', openai('gpt-5-mini'));
 * const reply = await createAgent({ model, tools: [weather] }).call('What is the weather in Oslo?');
 * expect(reply.text).toContain('snow');
 * model.verify();
 * ```
 */
export const cassette = (
  file: string | URL,
  model: Model,
  options: CassetteOptions = {},
): ScriptedModel => {
  checkModel('cassette()', model);
  checkOptions('cassette()', options, rules);
  const { mode, speed = Infinity, redact } = options;
  const redaction = createRedaction(redact);
  const compared = comparison(options, redaction);
  const tape = openTape(file, mode);
  const requests: ModelRequest[] = [];
  const stream$: Model['stream$'] = (request, context) =>
    defer(() => {
      requests.push(request);
      return tape.kind === 'record'
        ? recorded$(tape, redaction, model, request, context)
        : played$(take(tape, compared, model.name, request), tape.label, speed, context);
    });
  return {
    ...aroundModel(model, stream$),
    requests,
    verify: () => {
      tape.isDone = true;
      if (tape.kind === 'replay') verify(tape);
    },
  };
};

const verify = ({ label, recordings, played, mismatch }: ReplayingTape): void => {
  if (mismatch !== undefined) throw mismatch;
  if (played.size < recordings.length) {
    throw new Error(
      `The cassette '${label}' has ${recordings.length} recordings, but only ${played.size} were asked for. ${again}`,
    );
  }
};

const again = 'To record again, delete the file or set MILLRACE_CASSETTES=record.';

const arePatterns: Rule = [
  (value) =>
    [value].flat().every((it) => it instanceof RegExp || (typeof it === 'string' && it !== '')),
  'a word, a regular expression or a list of both',
];

const rules: Readonly<Record<keyof CassetteOptions, Rule>> = {
  mode: oneOf('auto', 'record', 'replay'),
  speed: [(value) => typeof value === 'number' && value > 0, 'a number greater than 0'],
  redact: arePatterns,
  ignore: arePatterns,
  normalize: isFunction,
};

// ---------------------------------------------------------------- recording

const recorded$ = (
  tape: RecordingTape,
  { clean, cleanEvents }: Redaction,
  model: Model,
  request: ModelRequest,
  context: ModelContext,
): Observable<ModelChunk> => {
  const { scheduler } = context;
  const sentAt = scheduler.now();
  const elapsed = (): number => Math.max(0, Math.round(scheduler.now() - sentAt));
  const events: Recording['events'][number][] = [];
  const save = tape.begin(model.name, cleanRequest(request, clean));
  const end = (how: End): void => {
    const answer = storedAnswer({ events: cleanEvents(events), end: how });
    const cleaned = {
      events: answer.events.map((event) => cleanJson(plain(event), clean)),
      end: cleanJson(plain(answer.end), clean),
    };
    if (!isReadable(cleaned)) {
      throw misuse(
        `cassette() cannot store an answer. Its chunks are invalid, or 'redact' matches more than secrets, such as types of chunks.`,
      );
    }
    save(cleaned);
  };
  const report = (event: ModelReport): void => {
    events.push({ ms: elapsed(), report: event });
    context.report(event);
  };
  return defer(() => model.stream$(request, { ...context, report })).pipe(
    tap({
      next: (chunk) => {
        events.push({ ms: elapsed(), chunk });
      },
      error: (error: unknown) => {
        if (!isAboutKey(error)) end({ ms: elapsed(), status: 'failed', error });
      },
      complete: () => end({ ms: elapsed(), status: 'completed' }),
      unsubscribe: () => {
        try {
          end({ ms: elapsed(), status: 'cancelled' });
        } catch (error) {
          context.report({ type: 'warning', message: messageOf(error) });
        }
      },
    }),
  );
};

/** A test that runs again with another key would replay it. */
const isAboutKey = (error: unknown): boolean =>
  isMillraceError(error) && (error.code === 'config' || error.code === 'auth');

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const cleanRequest = (request: ModelRequest, clean: Redaction['clean']): ModelRequest => {
  const cleaned = cleanJson(plain(stableRequest(request)), clean);
  if (isRequest(cleaned)) return cleaned;
  throw misuse(
    `cassette() cannot store a request. Its messages are invalid, or 'redact' matches more than secrets, such as names of roles.`,
  );
};

// ---------------------------------------------------------------- matching

/** The lines by which requests are compared. */
type Compared = (model: string, request: ModelRequest) => readonly string[];

const comparison = (
  { ignore, normalize = (request) => request }: CassetteOptions,
  { clean }: Redaction,
): Compared => {
  const ignored =
    ignore === undefined ? undefined : replacing(readPatterns('cassette()', ignore), '[ignored]');
  const known = new WeakMap<ModelRequest, readonly string[]>();
  return (model, request) => {
    const before = known.get(request);
    if (before !== undefined) return before;
    const seen = plain(normalize(cleanRequest(request, clean)));
    const shown = ignored === undefined ? seen : cleanJson(seen, ignored);
    const lines = withStableIds(linesOf({ model, request: shown }));
    known.set(request, lines);
    return lines;
  };
};

/** Returns the first unplayed recording that equals the request; throws if no recording does. */
const take = (
  tape: ReplayingTape,
  compared: Compared,
  model: string,
  request: ModelRequest,
): Recording => {
  // The next test must not see what is left by this one, which may fail.
  tape.isDone = true;
  const sent = compared(model, request);
  const linesOfRecording = (it: Recording): readonly string[] => compared(it.model, it.request);
  const isEqual = (it: Recording): boolean => {
    const lines = linesOfRecording(it);
    return lines.length === sent.length && lines.every((line, at) => line === sent[at]);
  };
  const left = tape.recordings.filter((it) => !tape.played.has(it));
  const found = left.find(isEqual);
  if (found !== undefined) {
    tape.played.add(found);
    return found;
  }
  const error = fatal(
    new MillraceError(
      'invalidRequest',
      `${whyNot(tape, left, sent, model, linesOfRecording)}\n\n${again}`,
    ),
  );
  tape.mismatch ??= error;
  throw error;
};

const whyNot = (
  { label, recordings, played }: ReplayingTape,
  left: readonly Recording[],
  sent: readonly string[],
  model: string,
  linesOfRecording: (recording: Recording) => readonly string[],
): string => {
  const request = `Request ${played.size + 1} to the model '${model}'`;
  const [nearest] = left
    .map((recording) => linesOfRecording(recording))
    .map((lines, at) => ({ lines, recording: left[at], score: similarity(lines, sent) }))
    .sort((a, b) => b.score - a.score);
  if (nearest?.recording === undefined) {
    return `${request} has no recording in the cassette '${label}': all ${recordings.length} are played.`;
  }
  const place = recordings.indexOf(nearest.recording) + 1;
  return `${request} equals no recording that is left in the cassette '${label}'. Recording ${place} is the most similar (- recorded, + sent):\n\n${diffOf(nearest.lines, sent)}`;
};

// ---------------------------------------------------------------- replaying

/** How long a consumer may take to cancel after its recording ended because it did, in milliseconds. */
const patienceMs = 1_000;

/** Plays a recording on the scheduler of the call, while demand is open. */
const played$ = (
  { events, end }: Recording,
  label: string,
  speed: number,
  { scheduler, demand, report, retryBudget }: ModelContext,
): Observable<ModelChunk> =>
  new Observable((subscriber) => {
    const sentAt = scheduler.now();
    let at = 0;
    let isOpen = false;
    let isPlaying = false;
    let waiting: Subscription | undefined;

    const dueMs = (): number => {
      const event = events[at];
      if (event !== undefined) return Math.round(event.ms / speed);
      // A consumer that cancels after a time has a clock that is as fast as ever.
      return end.status === 'cancelled' ? end.ms + patienceMs : Math.round(end.ms / speed);
    };
    const play = (): void => {
      const event = events[at];
      at += 1;
      if (event === undefined) {
        if (end.status === 'completed') subscriber.complete();
        else subscriber.error(end.status === 'failed' ? end.error : endedEarly(label, at - 1));
      } else if ('chunk' in event) {
        subscriber.next(event.chunk);
      } else {
        if (event.report.type === 'modelRetry') retryBudget?.take();
        report(event.report);
      }
    };
    const flow = (): void => {
      // An observer may close demand and open it again.
      if (isPlaying) return;
      isPlaying = true;
      waiting?.unsubscribe();
      while (isOpen && !subscriber.closed) {
        const waitMs = sentAt + dueMs() - scheduler.now();
        if (waitMs > 0) {
          waiting = scheduler.schedule(flow, waitMs);
          break;
        }
        play();
      }
      isPlaying = false;
    };
    subscriber.add(() => waiting?.unsubscribe());
    // No model answers before it is asked.
    subscriber.add(
      scheduler.schedule(() => {
        subscriber.add(
          demand.open$.subscribe({
            next: (level) => {
              isOpen = level;
              flow();
            },
            error: (error: unknown) => subscriber.error(error),
          }),
        );
      }),
    );
  });

const endedEarly = (label: string, events: number): MillraceError =>
  fatal(
    new MillraceError(
      'invalidRequest',
      `A recording of the cassette '${label}' ends after ${events} events, because its consumer cancelled the request. This consumer did not. ${again}`,
    ),
  );
