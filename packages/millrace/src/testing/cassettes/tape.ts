import { MillraceError, messageOf, misuse } from '../../values/errors.js';
import type { ModelRequest } from '../../models/model.js';
import {
  fileText,
  readRecordings,
  type Recording,
  recordingText,
  type StoredAnswer,
} from './file.js';

export type CassetteMode = 'auto' | 'record' | 'replay';

/** The recordings of one file, shared by the models of a process that use it. */
export type Tape = RecordingTape | ReplayingTape;

interface TapeBase {
  /** The file as it was given. */
  readonly label: string;
  /** Whether the next cassette of this file starts again: after `verify()`, or the first request of a replay. */
  isDone: boolean;
}

export interface RecordingTape extends TapeBase {
  readonly kind: 'record';
  /** Keeps a place for a request, in the order in which they are sent. Returns a function that saves its answer. */
  begin(model: string, request: ModelRequest): (answer: StoredAnswer) => void;
}

export interface ReplayingTape extends TapeBase {
  readonly kind: 'replay';
  readonly recordings: readonly Recording[];
  readonly played: Set<Recording>;
  /** The first request that no recording equals. */
  mismatch?: MillraceError;
}

/** By path: models of one process that use the same file share its tape. */
const tapes = new Map<string, Tape>();
/** Files that this process has recorded: `record` replays them, or a second test would overwrite the first one. */
const recorded = new Set<string>();

const node = () => {
  if (typeof process === 'undefined' || !('getBuiltinModule' in process)) {
    throw misuse('cassette() needs the file system of Node, Bun or Deno: it is a tool for tests.');
  }
  return {
    fs: process.getBuiltinModule('node:fs'),
    path: process.getBuiltinModule('node:path'),
    url: process.getBuiltinModule('node:url'),
  };
};

export const openTape = (file: string | URL, wanted: CassetteMode | undefined): Tape => {
  const { path: paths, url } = node();
  if (typeof file !== 'string' && !(file instanceof URL)) {
    throw misuse('cassette() takes the path or URL of a file, and a model.');
  }
  const path = paths.resolve(file instanceof URL ? url.fileURLToPath(file) : file);
  const label = file instanceof URL ? paths.relative(process.cwd(), path) : file;
  const open = tapes.get(path);
  const kind = kindOf(path, label, open, wanted ?? modeOfEnvironment());
  if (open?.kind === kind && !open.isDone) return open;
  const tape = kind === 'record' ? recordingTape(path, label) : replayingTape(path, label);
  tapes.set(path, tape);
  return tape;
};

const kindOf = (
  path: string,
  label: string,
  open: Tape | undefined,
  mode: CassetteMode,
): Tape['kind'] => {
  const current = open?.isDone === false ? open.kind : undefined;
  if (mode === 'record') {
    return recorded.has(path) && current !== 'record' ? 'replay' : 'record';
  }
  if (mode === 'replay') return 'replay';
  if (current !== undefined) return current;
  if (node().fs.existsSync(path)) return 'replay';
  if (!isContinuousIntegration()) return 'record';
  throw missing(label, ', and nothing is recorded if the variable CI is set');
};

const missing = (label: string, why: string): MillraceError =>
  misuse(
    `The cassette '${label}' does not exist${why}. Run the test on a machine that can reach the model, with MILLRACE_CASSETTES=record, and commit the file.`,
  );

const variable = (name: string): string => process.env[name] ?? '';

const isContinuousIntegration = (): boolean => !['', '0', 'false'].includes(variable('CI'));

const modeOfEnvironment = (): CassetteMode => {
  const mode = variable('MILLRACE_CASSETTES');
  if (mode === '') return 'auto';
  if (mode === 'auto' || mode === 'record' || mode === 'replay') return mode;
  throw misuse(`MILLRACE_CASSETTES must be record, replay or auto, not '${mode}'.`);
};

// ---------------------------------------------------------------- replaying

/** In bytes. A larger file is no cassette. */
const maxSize = 64 * 1024 * 1024;

const replayingTape = (path: string, label: string): ReplayingTape => ({
  kind: 'replay',
  label,
  isDone: false,
  recordings: readRecordings(label, textAt(path, label)),
  played: new Set(),
});

const textAt = (path: string, label: string): string => {
  const { fs } = node();
  if (!fs.existsSync(path)) throw missing(label, '');
  try {
    const stat = fs.statSync(path);
    if (!stat.isFile()) throw new Error('it is not a file');
    if (stat.size > maxSize) throw new Error(`it has more than ${maxSize} bytes`);
    return fs.readFileSync(path, 'utf8');
  } catch (cause) {
    throw new MillraceError('config', `Cannot read the cassette '${label}': ${messageOf(cause)}.`, {
      cause,
    });
  }
};

// ---------------------------------------------------------------- recording

interface Place {
  readonly model: string;
  readonly request: ModelRequest;
  /** JSON of the options and of each message. */
  readonly options: string;
  readonly messages: readonly string[];
  readonly base: Place | undefined;
  answer?: StoredAnswer;
  /** Its text in the file, if its base is at that place. */
  text?: { readonly base: number; readonly text: string };
}

const recordingTape = (path: string, label: string): RecordingTape => {
  const places: Place[] = [];
  let size = 0;
  return {
    kind: 'record',
    label,
    isDone: false,
    begin: (model, request) => {
      const place = placeOf(places, model, request);
      places.push(place);
      return (answer) => {
        place.answer = answer;
        const ended = places.filter((it) => it.answer !== undefined);
        const texts = ended.map((it) => textOf(it, ended));
        size = save(path, label, texts, ended.at(-1) === place ? size : 0);
      };
    },
  };
};

const placeOf = (before: readonly Place[], model: string, request: ModelRequest): Place => {
  const { messages: list, ...others } = request;
  const options = JSON.stringify(others);
  const messages = list.map((message) => JSON.stringify(message));
  const base = before.findLast(
    (it) => it.options === options && it.messages.every((message, at) => message === messages[at]),
  );
  return { model, request, options, messages, base };
};

/** A conversation is stored once: a request that continues an earlier one has the messages that it adds. */
const textOf = (place: Place, ended: readonly Place[]): string => {
  const { model, request, base, answer } = place;
  const at = base === undefined ? -1 : ended.indexOf(base);
  if (place.text?.base !== at) {
    const messages = request.messages.slice(base?.messages.length ?? 0);
    const stored = at === -1 ? request : { extends: at, messages };
    place.text = { base: at, text: recordingText({ model, request: stored, ...answer }) };
  }
  return place.text.text;
};

/** Writes a file atomically, or adds the last recording to a file of that size. Its folder is private if it is new. */
const save = (path: string, label: string, texts: readonly string[], size: number): number => {
  const { fs, path: paths } = node();
  const { head, between, tail } = fileText;
  const temporary = `${path}.${Math.random().toString(36).slice(2)}.tmp`;
  const sizeNow = (): number | undefined => fs.statSync(path, { throwIfNoEntry: false })?.size;
  try {
    if (size > 0 && sizeNow() === size) {
      const file = fs.openSync(path, 'r+');
      try {
        fs.writeSync(file, `${between}${texts.at(-1)}${tail}`, size - tail.length);
      } finally {
        fs.closeSync(file);
      }
    } else {
      fs.mkdirSync(paths.dirname(path), { recursive: true, mode: 0o700 });
      try {
        fs.writeFileSync(temporary, `${head}${texts.join(between)}${tail}`, { mode: 0o600 });
        fs.renameSync(temporary, path);
      } finally {
        fs.rmSync(temporary, { force: true });
      }
    }
    recorded.add(path);
    return sizeNow() ?? 0;
  } catch (cause) {
    throw new MillraceError('store', `Cannot write the cassette '${label}': ${messageOf(cause)}`, {
      cause,
    });
  }
};
