import { realpathSync, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { MillraceError, tool, type Tool, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { type Confinement, confinePath, listingOf, namesIn } from './confined-path.js';
import { explainFailure } from './explain-failure.js';
import { looksSecret } from './looks-secret.js';
import { type Page, pageOf } from './page-of.js';
import { readText } from './read-text.js';

/** Options of `readFile`. */
export interface ReadFileOptions {
  /** The directory that files may be read from. Default: the working directory at the creation of the tool. */
  readonly root?: string | undefined;
  /** Whether to refuse a path, which is relative to the root and separated by `/`. Default: `looksSecret`. */
  readonly isHidden?: ((path: string) => boolean) | undefined;
  /** The maximum size of a file. Default: 2,000,000. */
  readonly maxBytes?: number | undefined;
}

/**
 * Creates the tool `read_file`, which reads UTF-8 text files below a directory, and lists directories.
 *
 * It refuses paths that leave the directory, even through symbolic links, and paths that look like secrets. It returns
 * up to 15,000 characters, and a hint for the model how to continue. On Linux, it also protects against other processes
 * that replace a directory by a link at the same time.
 */
export const readFile = (options: ReadFileOptions = {}): Tool => {
  const { isHidden = looksSecret, maxBytes = 2_000_000 } = options;
  const confinement = {
    root: realDirectory(options.root ?? process.cwd(), 'readFile()'),
    isHidden,
  };
  return tool({
    name: 'read_file',
    idempotent: true,
    description:
      'Reads a text file of the project, or lists a directory. Use it to see the content of a file before you ' +
      'talk about it. A long file is returned in parts.',
    input: jsonSchema({
      type: 'object',
      properties: {
        path: {
          type: 'string',
          minLength: 1,
          maxLength: 1_024,
          description:
            'The path of the file, relative to the root directory; "." lists that directory.',
          examples: ['README.md', 'package.json', 'src/index.ts'],
        },
        fromLine: {
          type: 'integer',
          minimum: 1,
          description: 'The first line to read, counted from 1. Default: 1.',
        },
        lines: {
          type: 'integer',
          minimum: 1,
          maximum: 5_000,
          description: 'The number of lines to read. Default: as many as fit.',
        },
      },
      required: ['path'],
      additionalProperties: false,
    }),
    run: async ({ path, fromLine, lines }, { signal }) => {
      try {
        return await read(path, confinement, { fromLine, lines, maxBytes, signal });
      } catch (error) {
        throw await explainFailure(error, path, confinement);
      }
    },
  });
};

/** Resolves the root of a tool. Throws a `config` error if it is not a directory. */
export const realDirectory = (root: string, owner: string): string => {
  try {
    const real = realpathSync(root);
    if (statSync(real).isDirectory()) return real;
  } catch {
    // A missing directory is the same mistake.
  }
  throw new MillraceError(
    'config',
    `${owner}: there is no directory '${root}'. Create it first, or set another one.`,
  );
};

interface ReadOptions {
  readonly fromLine: number | undefined;
  readonly lines: number | undefined;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

const read = async (
  path: string,
  confinement: Confinement,
  { fromLine, lines, maxBytes, signal }: ReadOptions,
): Promise<ToolOutput> => {
  const place = await confinePath(path, confinement);
  signal.throwIfAborted();
  if ((await stat(place.real)).isDirectory()) {
    const names = await namesIn(place, confinement.isHidden);
    return toolOutput({ content: listingOf(place, names), details: { path: place.shown, names } });
  }
  const text = await readText(place.real, { name: place.shown, maxBytes, signal });
  const { text: content, ...about } = pageOf(text.replace(/^\ufeff/u, ''), fromLine, lines);
  if (about.fromLine > about.totalLines) {
    throw new Error(`'${place.shown}' has only ${about.totalLines} lines.`);
  }
  return toolOutput({
    content: text === '' ? '(The file is empty.)' : content + noteOn(about),
    details: { path: place.shown, ...about },
  });
};

const noteOn = ({ fromLine, toLine, totalLines, isCut }: Omit<Page, 'text'>): string => {
  const cut = isCut ? ' The line is too long and was truncated.' : '';
  const more = toLine < totalLines ? ` Continue with fromLine: ${toLine + 1}.` : '';
  if (fromLine === 1 && `${cut}${more}` === '') return '';
  return `\n\n[Lines ${fromLine} to ${toLine} of ${totalLines}.${cut}${more}]`;
};
