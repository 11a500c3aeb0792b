import { type Dirent, constants } from 'node:fs';
import { open, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { fromPull, MillraceError, openDemand } from 'millrace';
import {
  checkOptions,
  type Complete,
  defined,
  isDelay,
  isFunction,
  isStoreDatabase,
  isText,
  type Rule,
  storeMarker,
  wholeNumber,
} from 'millrace/values';
import { fromEvent, lastValueFrom, type Observable, takeUntil } from 'rxjs';
import {
  byHeadings,
  type ChunkedDocument,
  chunked,
  type Chunker,
  type TextDocument,
} from 'millrace/retrieval';
import { anchored } from '../files/anchored.js';
import { type Converter, createConverter } from './converter.js';
import { decodeText } from './decode.js';

/** Options of `documentsIn`. */
export interface DocumentsInOptions {
  /**
   * The extensions of files to read. `.html`, `.htm` and `.pdf` are converted, others read as text or Markdown. Default:
   * `.md`, `.markdown`, `.html`, `.htm`, `.txt` and `.pdf`.
   */
  readonly extensions?: readonly string[] | undefined;
  /** Whether to skip a file or directory, by its path below the directory, such as `guides/old`. Default: no. */
  readonly exclude?: ((path: string) => boolean) | undefined;
  /** How to split documents. Default: `byHeadings()`. */
  readonly chunk?: Chunker | undefined;
  /** A prefix of all sources, such as `handbook/`. Default: none. */
  readonly prefix?: string | undefined;
  /** The maximum size of a file in bytes; larger ones are reported. Default: 20,000,000. */
  readonly maxBytes?: number | undefined;
  /** The maximum number of files; more are an error. Default: 10,000. */
  readonly maxFiles?: number | undefined;
  /** How long the conversion of a file may take, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * The maximum growth of the process while a file is converted, in bytes; approximate, as it is read every 50 ms. Default:
   * 536,870,912.
   */
  readonly maxMemory?: number | undefined;
  /** Receives each file or directory that cannot be read, and why. Default: `process.emitWarning`. */
  readonly report?: ((warning: string, source: string) => void) | undefined;
}

/**
 * Reads the documents below a directory, and splits them: an Observable, and an AsyncIterable that reads a file only when
 * it is asked for the next document, as `add$` of an index does.
 *
 * Files are read in alphabetical order. `node_modules`, `dist`, directories of stores and names that start with a dot are
 * skipped, and symbolic links are not followed. HTML becomes Markdown, and a PDF text with a source for each page (`manual.pdf#page=3`): both in
 * a thread with limits of time and memory. A file that is broken or exceeds a limit is reported, and the others are read.
 * Errors with `config` if the directory cannot be read, and with `tooLarge` if there are more than `maxFiles`. Cold: each
 * subscription reads the files again, and unsubscribing stops immediately.
 */
export const documentsIn = (
  directory: string,
  options: DocumentsInOptions = {},
): Observable<ChunkedDocument> & AsyncIterable<ChunkedDocument> => {
  checkOptions('documentsIn()', { ...options, directory }, rules, ['directory']);
  const reading = { ...defaults, ...defined(options), directory: resolve(directory) };
  return Object.assign(
    fromPull((signal) => read(reading, signal), openDemand),
    {
      [Symbol.asyncIterator]: (): AsyncIterator<ChunkedDocument> => {
        const abort = new AbortController();
        const documents = read(reading, abort.signal);
        return {
          next: () => documents.next(),
          return: () => {
            abort.abort();
            return documents.return(undefined);
          },
        };
      },
    },
  );
};

const rules: Readonly<Record<keyof DocumentsInOptions | 'directory', Rule>> = {
  directory: isText,
  extensions: [
    (value) =>
      Array.isArray(value) && value.every((it) => typeof it === 'string' && /^\.[^./]+$/.test(it)),
    "a list of extensions, such as '.md'",
  ],
  exclude: isFunction,
  chunk: isFunction,
  prefix: isText,
  maxBytes: wholeNumber(1),
  maxFiles: wholeNumber(1),
  timeoutMs: isDelay,
  maxMemory: wholeNumber(2 ** 24),
  report: isFunction,
};

const defaults: Complete<DocumentsInOptions> = {
  extensions: ['.md', '.markdown', '.html', '.htm', '.txt', '.pdf'],
  exclude: () => false,
  chunk: byHeadings(),
  prefix: '',
  maxBytes: 20_000_000,
  maxFiles: 10_000,
  timeoutMs: 30_000,
  maxMemory: 2 ** 29,
  report: (warning) => process.emitWarning(warning),
};

interface Reading extends Complete<DocumentsInOptions> {
  readonly directory: string;
}

async function* read(
  given: Reading,
  signal: AbortSignal,
): AsyncGenerator<ChunkedDocument, undefined> {
  const directory = await realDirectory(given.directory);
  const reading = { ...given, directory };
  const { prefix, maxFiles, report, chunk } = reading;
  const converter = createConverter(reading);
  let files = 0;
  try {
    for await (const path of filesBelow(reading, '')) {
      files += 1;
      if (files > maxFiles) throw tooMany(given.directory, maxFiles);
      const source = `${prefix}${path}`;
      let document: TextDocument | undefined;
      try {
        document = await textOf(reading, converter, path, signal);
      } catch (error) {
        if (signal.aborted) return undefined;
        report(`${source} was skipped: ${whyOf(error)}.`, source);
      }
      if (signal.aborted) return undefined;
      if (document === undefined) continue;
      if (document.pages !== undefined && document.text.trim() === '') {
        report(`${source} has no text: it may be scanned.`, source);
      }
      yield chunked(document, chunk);
    }
  } finally {
    converter.close();
  }
  return undefined;
}

const whyOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');

const tooMany = (directory: string, maxFiles: number): MillraceError =>
  new MillraceError(
    'tooLarge',
    `There are more than ${maxFiles} documents below ${directory}. Choose a smaller directory, or raise 'maxFiles'.`,
  );

// ---------------------------------------------------------------- files

const ignoredDirectories = new Set(['node_modules', 'dist']);

const realDirectory = async (directory: string): Promise<string> => {
  try {
    return await realpath(directory);
  } catch (error) {
    throw unreadable(error);
  }
};

const unreadable = (cause: unknown): MillraceError =>
  new MillraceError('config', `documentsIn() cannot read the directory: ${whyOf(cause)}.`, {
    cause,
  });

async function* filesBelow(reading: Reading, below: string): AsyncGenerator<string> {
  const { directory, exclude, extensions, report, prefix } = reading;
  for (const entry of await entriesOf(directory, below, report, prefix)) {
    const { name } = entry;
    const path = below === '' ? name : `${below}/${name}`;
    if (name.startsWith('.') || ignoredDirectories.has(name) || exclude(path)) continue;
    if (entry.isDirectory()) yield* filesBelow(reading, path);
    else if (entry.isFile() && extensions.includes(extname(name).toLowerCase())) yield path;
  }
}

const entriesOf = async (
  directory: string,
  below: string,
  report: Reading['report'],
  prefix: string,
): Promise<readonly Dirent[]> => {
  try {
    const entries = await anchored(join(directory, below), (place) =>
      readdir(place, { withFileTypes: true }),
    );
    if (entries.some(({ name }) => name === storeMarker)) return [];
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    if (below !== '') {
      report(`${prefix}${below} was skipped: ${whyOf(error)}.`, `${prefix}${below}`);
      return [];
    }
    throw unreadable(error);
  }
};

const textOf = async (
  { directory, prefix, maxBytes }: Reading,
  converter: Converter,
  path: string,
  signal: AbortSignal,
): Promise<TextDocument> => {
  const bytes = await bytesOf(join(directory, path), maxBytes);
  if (isStoreDatabase(bytes)) throw new Error('it belongs to a store of conversations');
  const source = `${prefix}${path}`;
  const extension = extname(path).toLowerCase();
  const type = extension === '.pdf' ? 'pdf' : /^\.html?$/.test(extension) ? 'html' : undefined;
  if (type === undefined) return { source, text: decodeText(bytes, false) };
  signal.throwIfAborted();
  const converted = await lastValueFrom(
    converter.convert$(type, bytes).pipe(takeUntil(fromEvent(signal, 'abort'))),
  );
  const { text, title, pages } = converted;
  if (text.length > maxBytes) throw new Error(`it has more than ${maxBytes} characters`);
  return { source, text, ...(title === '' ? {} : { title }), ...(pages && { pages }) };
};

/** A link that has replaced the file meanwhile is not followed, and a pipe does not block. */
const openingFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const bytesOf = async (path: string, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> => {
  const file = await anchored(dirname(path), (place) =>
    open(join(place, basename(path)), openingFlags),
  );
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error('it is not a file');
    if (stats.size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes (maxBytes)`);
    // A copy: Node pools small buffers, and a thread would get the whole pool.
    return Uint8Array.from(await file.readFile());
  } finally {
    await file.close();
  }
};
