import type { ToolContext } from 'millrace';
import type { Observable } from 'rxjs';

/** The new text of a file, or a function that makes it from the present one, `undefined` if there is no such file. */
export type FileContent = string | ((before: string | undefined) => string);

/**
 * Text files that a deep agent works with, and shares with its sub-agents. Paths are relative, separated by `/`.
 * Everything is cold, emits once and completes. Errors are sentences for the model, without paths of the machine.
 * Test your own with `fileSystemContract` of `@millrace/deep-agent/testing`.
 */
export interface FileSystem {
  /** Emits the paths of all files, sorted. */
  list$(): Observable<readonly string[]>;
  /** Emits the text of a file, or `undefined` if there is no such file. */
  read$(path: string): Observable<string | undefined>;
  /**
   * Replaces the text of a file, or creates it, in one step. A function gets the text that it replaces: no write between is
   * lost, so it may be called again. `key` names the write: see `isIdempotent`.
   */
  write$(path: string, content: FileContent, key: string): Observable<unknown>;
  /** A write that is repeated with the same `key` has no effect. Default: false. */
  readonly isIdempotent?: boolean;
}

/** The result of code that ran in a sandbox. */
export interface SandboxResult {
  /** The output, for the model. */
  readonly text: string;
  /** Absent if the code was stopped, or could not start. */
  readonly exitCode?: number;
  /** The paths of files that it has created or changed, sorted. */
  readonly files: readonly string[];
}

/** A file system that also runs code, which sees its files. Test your own with `sandboxContract`. */
export interface Sandbox extends FileSystem {
  /** The language and what code may use, in a sentence or two for the model. */
  readonly language: string;
  /**
   * Runs code. Emits its output in pieces, then the result, and completes. Code that fails, takes too long or needs too
   * much memory is a result; an error means that the sandbox does not work. Unsubscribing ends the code immediately. Cold.
   */
  run$(code: string, context: ToolContext): Observable<string | SandboxResult>;
}

/** Whether a file system runs code. */
export const isSandbox = (files: FileSystem): files is Sandbox => 'run$' in files;

const maxPath = 1_024;
/** In bytes. Names are limited like this on disks. */
const maxName = 240;

/**
 * The path of a file in one form: relative, NFC. Throws an error with a sentence for the model if it may leave the root
 * (`..`), or has a backslash, a control character or a name that is too long.
 */
export const toPath = (given: string): string => {
  const path = given.normalize('NFC').replace(/^(?:\.?\/)+/u, '');
  const fail = (why: string): never => {
    throw new Error(`The path ${why}. Use a path such as 'notes/plan.md'.`);
  };
  if (path === '') return fail('is empty');
  if (path.length > maxPath) return fail(`is longer than ${maxPath} characters`);
  if (/[\p{Cc}\p{Cs}\\]/u.test(path)) return fail('has a backslash or a control character');
  for (const name of path.split('/')) {
    if (name === '..') return fail("leaves the root directory by '..'");
    if (name === '' || name === '.') return fail('has an empty part');
    if (new TextEncoder().encode(name).length > maxName) return fail('has a name that is too long');
  }
  return path;
};
