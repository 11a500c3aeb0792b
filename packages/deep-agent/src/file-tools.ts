import { tool, type Tool, toolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { nearMatches } from 'millrace/values';
import { pageOf } from '@millrace/skills';
import { editedText, editFileInput, filePath, writeFileInput } from '@millrace/tools/edits';
import { catchError, concatMap, from, last, map, type Observable, of, take, toArray } from 'rxjs';
import { type FileSystem, isSandbox, toPath } from './file-system.js';
import { runCode } from './run-code.js';

/** Creates the tools for a file system, and `run_code` if it is a sandbox. */
export const toolsFor = (files: FileSystem, maxLength: number): readonly Tool[] => [
  listFiles(files),
  readFile(files, maxLength),
  searchFiles(files),
  writeFile(files),
  editFile(files),
  ...(isSandbox(files) ? [runCode(files)] : []),
];

const maxListed = 500;

const listFiles = (files: FileSystem): Tool =>
  tool({
    name: 'list_files',
    idempotent: true,
    description: 'Lists the paths of all files, or of those below a directory.',
    input: jsonSchema({
      type: 'object',
      properties: {
        directory: { type: 'string', maxLength: 1_024, description: 'Default: all files.' },
      },
      additionalProperties: false,
    }),
    run: ({ directory = '' }) =>
      files.list$().pipe(
        map((paths) => {
          const found = paths.filter((it) => it.startsWith(prefixOf(directory)));
          const more = found.length > maxListed ? [`… and ${found.length - maxListed} more`] : [];
          const lines = [...found.slice(0, maxListed), ...more];
          return toolOutput({ content: lines.join('\n') || 'There are no files.' });
        }),
      ),
  });

/** The beginning of the paths below a directory. */
const prefixOf = (directory: string): string => {
  const isRoot = /^(?:\.?\/)*\.?$/u.test(directory);
  return isRoot ? '' : `${toPath(directory.replace(/\/+$/u, ''))}/`;
};

const readFile = (files: FileSystem, maxLength: number): Tool =>
  tool({
    name: 'read_file',
    idempotent: true,
    description: 'Reads a file. A long file is returned in parts.',
    input: jsonSchema({
      type: 'object',
      properties: {
        path: filePath,
        fromLine: {
          type: 'integer',
          minimum: 1,
          description: 'The first line to read, counted from 1. Default: 1.',
        },
        fromCharacter: {
          type: 'integer',
          minimum: 0,
          description: 'Where to start in the first line, for a very long one. Default: 0.',
        },
      },
      required: ['path'],
      additionalProperties: false,
    }),
    run: ({ path: given, fromLine = 1, fromCharacter = 0 }) =>
      existing$(files, given).pipe(
        map((text) => {
          if (text === '') return toolOutput({ content: '(The file is empty.)' });
          if (fromCharacter === 0) return pageOf(text, { path: given }, { fromLine, maxLength });
          const line = text.split(/\r?\n/u)[fromLine - 1] ?? '';
          const end = fromCharacter + maxLength;
          return toolOutput({
            content: `${line.slice(fromCharacter, end)}\n\n[Characters ${fromCharacter} to ${Math.min(end, line.length)} of ${line.length} of line ${fromLine}.]`,
            details: { path: given },
          });
        }),
      ),
  });

/** The text of a file. Errors with near paths if there is no such file. */
const existing$ = (files: FileSystem, given: string): Observable<string> =>
  files.read$(given).pipe(
    concatMap((text) =>
      text === undefined
        ? files.list$().pipe(
            map((paths): string => {
              throw new Error(noFile(given, paths));
            }),
          )
        : [text],
    ),
  );

const noFile = (given: string, paths: readonly string[]): string => {
  const near = nearMatches(given, paths);
  const hint = near.length > 0 ? near : paths.slice(0, 10);
  return `There is no file '${given}'.${hint.length > 0 ? ` There are: ${hint.join(', ')}.` : ''}`;
};

const writeFile = (files: FileSystem): Tool =>
  tool({
    name: 'write_file',
    // Again, it could replace what another agent wrote in between.
    idempotent: files.isIdempotent === true,
    description:
      'Writes a file: creates it, or replaces its whole content. To change a part, use edit_file.',
    input: writeFileInput,
    run: ({ path: given, content }, { idempotencyKey }) =>
      files.write$(given, content, idempotencyKey).pipe(
        last(null, undefined),
        map(() => toolOutput({ content: `Written: ${toPath(given)}` })),
      ),
  });

const editFile = (files: FileSystem): Tool =>
  tool({
    name: 'edit_file',
    idempotent: files.isIdempotent === true,
    description: 'Replaces a part of a file. The old text must occur exactly once in the file.',
    input: editFileInput,
    run: ({ path: given, ...edit }, { idempotencyKey }) =>
      files
        .write$(given, (before) => editedText(before, edit), idempotencyKey)
        .pipe(
          last(null, undefined),
          map(() => toolOutput({ content: `Changed: ${toPath(given)}` })),
        ),
  });

const maxMatches = 100;
const maxLine = 200;

const searchFiles = (files: FileSystem): Tool =>
  tool({
    name: 'search_files',
    idempotent: true,
    description:
      'Finds the lines that have a string, in all files or those below a directory. Upper and lower case are different.',
    input: jsonSchema({
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 500, description: 'What to search for.' },
        directory: {
          type: 'string',
          maxLength: 1_024,
          description: 'A directory, or the path of one file. Default: all files.',
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: ({ query, directory = '' }) =>
      files.list$().pipe(
        concatMap((paths) => {
          const below = prefixOf(directory);
          return from(paths.filter((it) => `${it}/` === below || it.startsWith(below)));
        }),
        concatMap((at) => linesOf$(files, at)),
        concatMap((lines) => from(lines.filter(({ text }) => text.includes(query)))),
        take(maxMatches),
        map(({ at, line, text }) => `${at}:${line}: ${text.slice(0, maxLine)}`),
        toArray(),
        map((lines) => toolOutput({ content: lines.join('\n') || `No line has '${query}'.` })),
      ),
  });

interface Line {
  readonly at: string;
  readonly line: number;
  readonly text: string;
}

/** Files that cannot be read, such as images, have no lines. */
const linesOf$ = (files: FileSystem, at: string): Observable<readonly Line[]> =>
  files.read$(at).pipe(
    map((text = '') => text.split(/\r?\n/u).map((each, i) => ({ at, line: i + 1, text: each }))),
    catchError(() => of([])),
  );
