import type { Dirent } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join, resolve } from 'node:path';
import type { SearchDocument } from './document.js';

/** What `markdownFiles` can be told. */
export interface MarkdownFilesOptions {
  /** Which files are read. Default: `.md` and `.markdown`. */
  readonly extensions?: readonly string[];
  /**
   * Files and directories that are passed over too, by their path below the directory, such as
   * `packages/core/temp`. Default: none.
   */
  readonly exclude?: (path: string) => boolean;
  /** More files than this are an error. Default: 1,000. */
  readonly maxFiles?: number;
  /** More bytes than this, in all, are an error. Default: 20 MB. */
  readonly maxBytes?: number;
}

/**
 * Reads the Markdown files below a directory, for `searchDocuments({ load: markdownFiles('docs') })`.
 *
 * Their paths are relative to it, in alphabetical order. `node_modules`, `dist` and whatever begins with a dot
 * are passed over; symbolic links are not followed. It reads each time it is called.
 */
export const markdownFiles = (
  directory: string,
  {
    extensions = ['.md', '.markdown'],
    exclude = () => false,
    maxFiles = 1_000,
    maxBytes = 20_000_000,
  }: MarkdownFilesOptions = {},
): (() => AsyncIterable<SearchDocument>) => {
  const root = resolve(directory);
  return async function* load() {
    let files = 0;
    let bytes = 0;
    for await (const path of filesBelow(root, '', { extensions: new Set(extensions), exclude })) {
      files += 1;
      bytes += (await stat(join(root, path))).size;
      if (files > maxFiles || bytes > maxBytes) {
        const [most, option] =
          files > maxFiles ? [`${maxFiles} files`, 'maxFiles'] : [`${maxBytes} bytes`, 'maxBytes'];
        throw new Error(
          `There are more than ${most} to search below ${directory}. Name a directory below it, or raise '${option}'.`,
        );
      }
      yield { path, text: await readFile(join(root, path), 'utf8') };
    }
  };
};

const passedOver = new Set(['node_modules', 'dist']);

interface Choice {
  readonly extensions: ReadonlySet<string>;
  readonly exclude: (path: string) => boolean;
}

async function* filesBelow(root: string, below: string, choice: Choice): AsyncGenerator<string> {
  const entries = await readdir(join(root, below), { withFileTypes: true });
  for (const entry of entries.sort(byName)) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.name.startsWith('.') || passedOver.has(entry.name) || choice.exclude(path)) continue;
    if (entry.isDirectory()) yield* filesBelow(root, path, choice);
    else if (entry.isFile() && choice.extensions.has(extname(entry.name).toLowerCase())) yield path;
  }
}

const byName = (a: Dirent, b: Dirent): number => (a.name < b.name ? -1 : 1);
