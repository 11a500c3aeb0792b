import {
  inProcessMemory,
  isMillraceError,
  type Memory,
  type MemoryFactory,
  type Message,
  MillraceError,
  textBlock,
  textOf,
} from 'millrace';
import {
  checkOptions,
  isFunction,
  isRecord,
  isText,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  catchError,
  concat,
  concatMap,
  defer,
  EMPTY,
  ignoreElements,
  last,
  map,
  type Observable,
  type ObservableInput,
  of,
  retry,
  tap,
  throwError,
  toArray,
} from 'rxjs';
import { checkedFiles } from './checked-files.js';
import { bytesOf, fileSizes } from './file-sizes.js';
import type { FileContent, FileSystem } from './file-system.js';

/** Options of `filesInMemory`. */
export interface FilesInMemoryOptions {
  /** Keeps the files: `store.memory` of `@millrace/store` persists them. Default: in this process. */
  readonly memory?: MemoryFactory | undefined;
  /** Names these files in the memory, such as the id of a user or a session. Default: `files`. */
  readonly id?: string | undefined;
  /** The maximum size of a file, in bytes. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
  /**
   * The maximum size of all files, up to 10,000, in bytes, with older versions that the memory cannot remove. The first write of this
   * object loads the files that this process has not measured, or has written since. What other objects or processes write afterwards
   * does not count, until this object writes the same file. Default: 50,000,000.
   */
  readonly maxTotalBytes?: number | undefined;
}

/**
 * Creates a file system in a memory: in this process, or in any store of conversations. Each file is a conversation of
 * one message; a memory that cannot remove messages keeps all versions. Writes are idempotent: one that is repeated has no
 * effect, unless 256 other writes of the file came after it.
 */
export const filesInMemory = (options: FilesInMemoryOptions = {}): FileSystem => {
  checkOptions('filesInMemory()', options, rules);
  const { memory = inProcessMemory(), id = 'files' } = options;
  const { maxBytes = 2_000_000, maxTotalBytes = 50_000_000 } = options;
  const index = (): Memory => memory(`${id}/index`);
  const fileAt = (path: string): Memory => memory(`${id}/file/${path}`);
  const list$ = defer(() => index().load$()).pipe(
    last(),
    map((entries) => entries.map((entry) => textOf(entry).slice(mark.length)).sort()),
  );
  const known = knownSizes(memory, id);
  const sizes = fileSizes(measured$(fileAt, list$, known), {
    keepsVersions: () => !isTree(index()),
  });
  const written$ = (path: string, content: FileContent, key: string): Observable<unknown> =>
    fileAt(path)
      .load$()
      .pipe(
        last(),
        concatMap((versions) => {
          const before = versions.at(-1);
          const keys = before === undefined ? [] : keysOf(before);
          const isKnown = keys.includes(key);
          // A crash may have come between the first version and its entry in the index.
          const listed$ =
            before === undefined || isKnown
              ? index().append$([messageOf(path, mark + path)])
              : EMPTY;
          if (isKnown) return listed$;
          const text = typeof content === 'string' ? content : content(before && textIn(before));
          const version = versionOf([...keys, key].slice(-maxKeys), 1 + numberOf(before), text);
          return concat(replaced$(fileAt(path), before, version), listed$).pipe(
            tap({ subscribe: () => known.delete(path), finalize: () => known.delete(path) }),
          );
        }),
      );
  return checkedFiles(
    {
      isIdempotent: true,
      list$: () => list$,
      read$: (path) =>
        defer(() => fileAt(path).load$()).pipe(
          last(),
          map((versions) => versions.at(-1)),
          map((version) => version && textIn(version)),
        ),
      write$: (path, content, key) =>
        defer(() => written$(path, content, key)).pipe(
          retry({ count: maxAttempts, delay: againIfLost }),
          last(null, undefined),
          // It may have been refused for the size of a file that another process has shortened: the next object measures again.
          tap({ error: () => known.clear() }),
        ),
    },
    { maxBytes, maxTotalBytes },
    sizes,
  );
};

/** Of how many ids of a memory the sizes are kept. */
const maxKept = 100;

const sizesByMemory = new WeakMap<MemoryFactory, Map<string, Map<string, number>>>();

/** The sizes of files that were measured in this process and not written since: of a function, each call has another object. */
const knownSizes = (memory: MemoryFactory, id: string): Map<string, number> => {
  const byId = sizesByMemory.get(memory) ?? new Map<string, Map<string, number>>();
  sizesByMemory.set(memory, byId);
  const known = byId.get(id) ?? new Map<string, number>();
  // The first one of a map was added first.
  byId.delete(id);
  byId.set(id, known);
  for (const oldest of [...byId.keys()].slice(0, -maxKept)) byId.delete(oldest);
  return known;
};

/** Emits the bytes of all versions of each file, without their keys. Loads those that are not known. */
const measured$ = (
  fileAt: (path: string) => Memory,
  list$: Observable<readonly string[]>,
  known: Map<string, number>,
): Observable<ReadonlyMap<string, number>> =>
  list$.pipe(
    concatMap((paths) => paths),
    concatMap((path): ObservableInput<[string, number]> => {
      const bytes = known.get(path);
      if (bytes !== undefined) return [[path, bytes]];
      return fileAt(path)
        .load$()
        .pipe(
          last(),
          map((versions): [string, number] => [path, sizeOf(versions)]),
          tap((measured) => known.set(...measured)),
        );
    }),
    toArray(),
    map((sizes) => new Map(sizes)),
  );

const sizeOf = (versions: readonly Message[]): number =>
  versions.reduce((sum, version) => sum + bytesOf(textIn(version)), 0);

/** Whether a memory can replace a version, and remove the older one. */
const isTree = (memory: Memory): boolean =>
  memory.branches$ !== undefined && memory.remove$ !== undefined;

const rules: Readonly<Record<keyof FilesInMemoryOptions, Rule>> = {
  memory: isFunction,
  id: isText,
  maxBytes: wholeNumber(1),
  maxTotalBytes: wholeNumber(1),
};

/** An empty string is no content of a message. */
const mark = '.';

const messageOf = (id: string, text: string): Message => ({
  id,
  role: 'user',
  content: [textBlock(text)],
});

/** How many writes a version knows. */
const maxKeys = 256;

/** A version of a file: the keys of its last writes in a line of JSON, then the text. */
const versionOf = (keys: readonly string[], number: number, text: string): Message =>
  messageOf(`${keys.at(-1) ?? ''}#${number}`, `${JSON.stringify(keys)}\n${text}`);

const keysOf = (version: Message): readonly string[] => {
  const all = textOf(version);
  const keys: unknown = JSON.parse(all.slice(0, all.indexOf('\n')));
  return Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [];
};

const textIn = (version: Message): string => {
  const all = textOf(version);
  return all.slice(all.indexOf('\n') + 1);
};

/** The number of a version, from 1. */
const numberOf = ({ id }: Pick<Message, 'id'> = { id: '#0' }): number =>
  Number(id.slice(id.lastIndexOf('#') + 1));

const maxAttempts = 100;

const againIfLost = (error: unknown): Observable<unknown> => {
  if (isMillraceError(error) && error.code === 'conflict') return of(undefined);
  throw error;
};

/** Replaces the version before. Errors with `conflict` if another version came first: then the head does not move. */
const replaced$ = (
  memory: Memory,
  before: Message | undefined,
  version: Message,
): Observable<unknown> => {
  const place = isTree(memory)
    ? { after: null, ...(before && { replaces: before.id }) }
    : { after: before?.id ?? null };
  return memory.append$([version], place).pipe(
    last(null, undefined),
    concatMap((change) => {
      const head = isRecord(change) && isRecord(change['head']) ? change['head']['to'] : version.id;
      if (head === version.id) return withoutOlder$(memory, version);
      const lost = new MillraceError('conflict', 'Other writes of the file came first. Try again.');
      return concat(
        removed$(memory, version.id),
        throwError(() => lost),
      );
    }),
  );
};

/** Removes the older versions, also those that a crash has left. */
const withoutOlder$ = (memory: Memory, version: Message): Observable<unknown> =>
  defer(() => memory.branches$?.(version.id) ?? EMPTY).pipe(
    concatMap((ids) =>
      ids.filter((id) => id !== version.id && numberOf({ id }) <= numberOf(version)),
    ),
    concatMap((id) => removed$(memory, id)),
    // Another writer may have replaced this version, too.
    catchError(() => EMPTY),
  );

/** A version that cannot be removed now is removed after the next write. */
const removed$ = (memory: Memory, id: string): Observable<never> =>
  defer(() => memory.remove$?.(id) ?? EMPTY).pipe(
    ignoreElements(),
    catchError(() => EMPTY),
  );
