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
import { concat, concatMap, defer, EMPTY, last, map, type Observable, of, retry } from 'rxjs';
import { checkedFiles, type FileContent, type FileSystem } from './file-system.js';

/** Options of `filesInMemory`. */
export interface FilesInMemoryOptions {
  /** Keeps the files: `store.memory` of `@millrace/store` persists them. Default: in this process. */
  readonly memory?: MemoryFactory | undefined;
  /** Names these files in the memory, such as the id of a user or a session. Default: `files`. */
  readonly id?: string | undefined;
  /** The maximum size of a file, in bytes. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
}

/**
 * Creates a file system in a memory: in this process, or in any store of conversations. Each file is a conversation of
 * its versions, so reading a file that was written often costs all of its versions. Writes are idempotent.
 */
export const filesInMemory = (options: FilesInMemoryOptions = {}): FileSystem => {
  checkOptions('filesInMemory()', options, rules);
  const { memory = inProcessMemory(), id = 'files', maxBytes = 2_000_000 } = options;
  const index = (): Memory => memory(`${id}/index`);
  const fileAt = (path: string): Memory => memory(`${id}/file/${path}`);
  const written$ = (path: string, content: FileContent, key: string): Observable<unknown> =>
    fileAt(path)
      .load$()
      .pipe(
        last(),
        concatMap((versions) => {
          const before = versions.at(-1);
          const isKnown = versions.some((version) => isOf(version, key));
          // A crash may have come between the first version and its entry in the index.
          const listed$ =
            before === undefined || isKnown ? index().append$([messageOf(path, path)]) : EMPTY;
          if (isKnown) return listed$;
          const text = typeof content === 'string' ? content : content(before && contentOf(before));
          const version = messageOf(`${key}#${versions.length}`, text);
          return concat(appendedAfter$(fileAt(path), before?.id ?? null, version), listed$);
        }),
      );
  return checkedFiles(
    {
      isIdempotent: true,
      list$: () =>
        defer(() => index().load$()).pipe(
          last(),
          map((entries) => entries.map(contentOf).sort()),
        ),
      read$: (path) =>
        defer(() => fileAt(path).load$()).pipe(
          last(),
          map((versions) => versions.at(-1)),
          map((version) => version && contentOf(version)),
        ),
      write$: (path, content, key) =>
        concat(
          defer(() => written$(path, content, key)).pipe(
            retry({ count: maxAttempts, delay: againIfLost }),
          ),
          of(undefined),
        ).pipe(last()),
    },
    maxBytes,
  );
};

const rules: Readonly<Record<keyof FilesInMemoryOptions, Rule>> = {
  memory: isFunction,
  id: isText,
  maxBytes: wholeNumber(1),
};

/** An empty string is no content of a message. */
const mark = '.';

const messageOf = (id: string, text: string): Message => ({
  id,
  role: 'user',
  content: [textBlock(mark + text)],
});

const contentOf = (message: Message): string => textOf(message).slice(mark.length);

const isOf = ({ id }: Message, key: string): boolean => id.slice(0, id.lastIndexOf('#')) === key;

const maxAttempts = 100;

const againIfLost = (error: unknown): Observable<unknown> => {
  if (isMillraceError(error) && error.code === 'conflict') return of(undefined);
  throw error;
};

/** Appends the next version. In a tree, the head does not move if another version came first. */
const appendedAfter$ = (
  memory: Memory,
  after: string | null,
  version: Message,
): Observable<unknown> =>
  memory.append$([version], { after }).pipe(
    map((change) => {
      const head = isRecord(change) && isRecord(change['head']) ? change['head']['to'] : version.id;
      if (head === version.id) return;
      throw new MillraceError('conflict', 'Other writes of the file came first. Try again.');
    }),
  );
