import { textOf, type ToolContext } from 'millrace';
import {
  checkOptions,
  fnv1a,
  isDelay,
  isRecord,
  messageOf,
  type Rule,
  wholeNumber,
} from 'millrace/values';
import {
  memoryRule,
  notInstalled,
  outputOf,
  sandbox$,
  type SandboxCall,
  type SandboxMessage,
  type SandboxResults,
  tooSlow$,
} from '@millrace/tools/javascript';
import {
  catchError,
  defaultIfEmpty,
  defer,
  forkJoin,
  ignoreElements,
  last,
  map,
  merge,
  mergeMap,
  type Observable,
  of,
  Subject,
  takeWhile,
  tap,
} from 'rxjs';
import type { FileSystem, Sandbox, SandboxResult } from '../file-system.js';

/** Options of `javaScript`. */
export interface JavaScriptOptions {
  /** The maximum duration with the work on files, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** The memory of the sandbox in MiB, 32 to 1,024. Default: 64. */
  readonly memoryMb?: number | undefined;
  /** The maximum number of characters of the output, and of the result. Default: 10,000. */
  readonly maxLength?: number | undefined;
}

/**
 * Creates a sandbox for JavaScript in QuickJS, that of `runJavaScript`, on any file system. Code calls
 * `tools.list_files()`, `tools.read_file({ path })`, which resolves to `{ text }`, and
 * `tools.write_file({ path, content })`. Unsubscribing ends its thread.
 */
export const javaScript = (files: FileSystem, options: JavaScriptOptions = {}): Sandbox => {
  checkOptions('javaScript()', options, rules);
  const { timeoutMs = 10_000, memoryMb = 64, maxLength = 10_000 } = options;
  return {
    ...files,
    language,
    run$: (code, context) =>
      defer(() => {
        const { idempotencyKey, scheduler } = context;
        const results$ = new Subject<SandboxResults>();
        const host = { names, now: scheduler.now(), seed: fnv1a(idempotencyKey), maxCalls: 10_000 };
        const access = accessTo(files, context);
        const task = { code, memoryMb, maxLength, host };
        return merge(sandbox$(task, results$), tooSlow$(timeoutMs, scheduler)).pipe(
          mergeMap((message) =>
            message.type === 'calls'
              ? forkJoin(message.calls.map(access.answer$)).pipe(
                  tap((results) => results$.next({ round: message.round, results })),
                  ignoreElements(),
                )
              : of(message),
          ),
          takeWhile(({ type }) => type === 'log', true),
          map(access.emissionOf),
        );
      }),
  };
};

const rules: Readonly<Record<keyof JavaScriptOptions, Rule>> = {
  timeoutMs: isDelay,
  memoryMb: memoryRule,
  maxLength: wholeNumber(100),
};

const names = ['list_files', 'read_file', 'write_file'] as const;

const language =
  'JavaScript in QuickJS, without network, timers and modules. Files: await tools.list_files(), a list of paths; ' +
  '(await tools.read_file({ path })).text; await tools.write_file({ path, content }). Print with console.log.';

type Results = SandboxResults['results'][number];

/** The access of one run to the files. */
const accessTo = (files: FileSystem, { idempotencyKey }: ToolContext) => {
  const changed = new Set<string>();
  const logged: string[] = [];
  const call$ = ({ id, name, input }: SandboxCall): Observable<unknown> => {
    const given: unknown = JSON.parse(input);
    const { path, content } = isRecord(given) ? given : {};
    if (name === 'list_files') return files.list$();
    if (typeof path !== 'string') throw new Error("'path' must be a string.");
    if (name === 'read_file') {
      return files.read$(path).pipe(
        map((text) => {
          if (text !== undefined) return { text };
          throw new Error(`There is no file '${path}'.`);
        }),
      );
    }
    if (typeof content !== 'string') throw new Error("'content' must be a string.");
    return files.write$(path, content, `${idempotencyKey}/${id}`).pipe(
      last(null, undefined),
      map(() => {
        changed.add(path);
        return 'Written.';
      }),
    );
  };
  return {
    answer$: (call: SandboxCall): Observable<Results> =>
      defer(() => call$(call)).pipe(
        map((value) => (typeof value === 'string' ? value : JSON.stringify(value))),
        defaultIfEmpty(''),
        map((text) => ({ id: call.id, text, isError: false })),
        catchError((error: unknown) => of({ id: call.id, text: messageOf(error), isError: true })),
      ),
    emissionOf: (message: Exclude<SandboxMessage, { type: 'calls' }>): string | SandboxResult => {
      if (message.type === 'log') {
        logged.push(message.text);
        return message.text;
      }
      if (message.type === 'notInstalled') throw notInstalled('javaScript()');
      const { type, text } = message;
      const output = outputOf({ type, text, logged: logged.join('') });
      const exitCode = type === 'result' ? 0 : 1;
      return { text: textOf(output), exitCode, files: [...changed].sort() };
    },
  };
};
