import {
  addTools,
  type CallInfo,
  type Interceptor,
  type Layer,
  MillraceError,
  onCall,
  textBlock,
  textOf,
  type ToolResultBlock,
} from 'millrace';
import { checkOptions, fnv1a, having, messageOf, type Rule, wholeNumber } from 'millrace/values';
import { catchError, concatMap, last, map, mergeMap, type Observable, of } from 'rxjs';
import type { FileSystem } from './file-system.js';
import { toolsFor } from './file-tools.js';

/** Options of `fileSystem`. */
export interface FileSystemOptions {
  /**
   * The length from which a tool result is moved to a file, in characters, 500 or more. `maxObservation` of the limits should not
   * be less. Default: 10,000.
   */
  readonly offloadAbove?: number | undefined;
}

/** A file system, or a function that returns the one of a root call and its sub-agents: the same for each call of a session, for example. */
export type FilesOf = FileSystem | ((root: CallInfo) => FileSystem);

/**
 * Gives an agent and its sub-agents the tools `list_files`, `read_file`, `search_files`, `write_file` and `edit_file`, and
 * `run_code` if the file system is a sandbox. A longer tool result is moved to a file `results/…`, after all guards: the
 * model gets its beginning and its path. If it cannot be written, the result stays as it is, with the reason.
 */
export const fileSystem = (files: FilesOf, options: FileSystemOptions = {}): Layer => {
  checkOptions('fileSystem()', options, rules);
  const { offloadAbove = 10_000 } = options;
  const filesOf = typeof files === 'function' ? oncePerFamily(files) : () => files;
  return {
    name: 'fileSystem',
    single: true,
    inherit: true,
    priority: 84,
    on: [offload(filesOf, offloadAbove)],
    call: (context) => (next) => {
      const tools = toolsFor(filesOf(context.info), offloadAbove);
      return addTools(...tools).call?.(context)(next) ?? next;
    },
  };
};

const [isFileSystem] = having('write$', '');

export const isFiles: Rule = [
  (value) => typeof value === 'function' || isFileSystem(value),
  'a file system, such as filesInMemory(), or a function that returns one',
];

const rules: Readonly<Record<keyof FileSystemOptions, Rule>> = { offloadAbove: wholeNumber(500) };

/** Sub-agents have the same object as the root call: its writes wait for each other, and it is kept until all have ended. */
const oncePerFamily = (filesOf: (root: CallInfo) => FileSystem) => {
  const known = new WeakMap<CallInfo, FileSystem>();
  return (call: CallInfo): FileSystem => {
    const root = rootOf(call);
    const files = known.get(root) ?? asFileSystem(filesOf(root));
    known.set(root, files);
    return files;
  };
};

/** Without it, each tool call would fail alone: a program in JavaScript may return anything, such as a promise. */
const asFileSystem = (files: FileSystem): FileSystem => {
  if (isFileSystem(files)) return files;
  throw new MillraceError(
    'config',
    'fileSystem(): the function must return a file system, such as filesInMemory(), and no promise of one.',
  );
};

const rootOf = (call: CallInfo): CallInfo =>
  call.parent === undefined ? call : rootOf(call.parent);

/** Their results are limited already, or say how to read on. */
const ownTools: readonly string[] = ['list_files', 'read_file', 'read_skill', 'read_result'];

/** Guards of results, at 1,000, see the whole of it. */
const place = { name: 'offload', priority: 2_000 };

const offload = (filesOf: (call: CallInfo) => FileSystem, above: number): Interceptor =>
  onCall(
    'postActing',
    (call) =>
      mergeMap((event) => {
        const { result, toolCall } = event;
        const whole = textOf(result);
        if (whole.length <= above || ownTools.includes(toolCall.name)) return of(event);
        return moved$(filesOf(call), call, result, whole).pipe(
          map((content) => ({ ...event, result: withText(result, content) })),
        );
      }),
    place,
  );

const moved$ = (
  files: FileSystem,
  { callId }: CallInfo,
  { toolCallId }: ToolResultBlock,
  whole: string,
): Observable<string> => {
  const path = `results/${nameOf(callId)}/${nameOf(toolCallId)}.txt`;
  // A call may be made again with its id, and then have another result.
  const key = `${callId}/${toolCallId}/${fnv1a(whole)}`;
  return of(undefined).pipe(
    concatMap(() => files.write$(path, whole, key)),
    last(null, undefined),
    map(() => `${noteOn(path, whole)}\n\n${beginningOf(whole)}`),
    catchError((error: unknown) =>
      of(`[It could not be moved to a file: ${messageOf(error)}]\n${whole}`),
    ),
  );
};

/** A part of a path for any id, which may come from a model. Different ids have different names. */
const nameOf = (id: string): string => {
  const name = id.replace(/[^\w-]/gu, '_').slice(0, 60);
  return name === id ? name : `${name}-${fnv1a(id).toString(36)}`;
};

const noteOn = (path: string, whole: string): string => {
  const lines = whole.split('\n').length;
  return `[The result was moved to the file ${path}: ${whole.length} characters, ${lines} lines. Use read_file with fromLine or fromCharacter, or search_files. It begins with:]`;
};

const previewLength = 1_000;

const beginningOf = (whole: string): string =>
  `${whole.slice(0, previewLength).replace(/\p{Cs}$/u, '')}…`;

/** Media are not moved. */
const withText = (result: ToolResultBlock, text: string): ToolResultBlock => ({
  ...result,
  content: [textBlock(text), ...result.content.filter(({ type }) => type !== 'text')],
});
