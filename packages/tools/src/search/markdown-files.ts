import type { Dirent } from 'node:fs';
import { readdir, realpath } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { storeMarker } from 'millrace/values';
import { anchored } from '../files/anchored.js';
import { openUnlessDatabase } from '../files/store-database.js';
import type { SearchDocument } from './document.js';

/** Options of `markdownFiles`. */
export interface MarkdownFilesOptions {
  /** The extensions of files to read. Default: `.md` and `.markdown`. */
  readonly extensions?: readonly string[] | undefined;
  /**
   * Whether to skip a file or directory, by its path below the directory, such as `packages/millrace/temp`. Default: no.
   */
  readonly exclude?: ((path: string) => boolean) | undefined;
  /** The maximum number of files; more are an error. Default: 1,000. */
  readonly maxFiles?: number | undefined;
  /** The maximum number of bytes in total; more are an error. Default: 20 MB. */
  readonly maxBytes?: number | undefined;
}

/**
 * Reads the Markdown files below a directory, for `searchDocuments({ load: markdownFiles('docs') })`.
 *
 * Paths are relative to the directory, in alphabetical order. It skips `node_modules`, `dist`, stores and
 * names that start with a dot, and does not follow symbolic links. Each call reads the files again.
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
  const given = resolve(directory);
  return async function* load() {
    const root = await realpath(given);
    let files = 0;
    let bytes = 0;
    for await (const path of filesBelow(root, '', { extensions: new Set(extensions), exclude })) {
      const real = join(root, path);
      const file = await anchored(dirname(real), (place) =>
        openUnlessDatabase(join(place, basename(real))),
      );
      if (file === undefined) continue;
      try {
        const stats = await file.stat();
        // A pipe may have replaced it.
        if (!stats.isFile()) continue;
        files += 1;
        bytes += stats.size;
        if (files > maxFiles || bytes > maxBytes) {
          const [most, option] =
            files > maxFiles
              ? [`${maxFiles} files`, 'maxFiles']
              : [`${maxBytes} bytes`, 'maxBytes'];
          throw new Error(
            `There are more than ${most} to search below ${directory}. Choose a smaller directory, or raise '${option}'.`,
          );
        }
        yield { path, text: await file.readFile('utf8') };
      } finally {
        await file.close();
      }
    }
  };
};

const ignoredDirectories = new Set(['node_modules', 'dist']);

interface FileFilter {
  readonly extensions: ReadonlySet<string>;
  readonly exclude: (path: string) => boolean;
}

async function* filesBelow(
  root: string,
  below: string,
  choice: FileFilter,
): AsyncGenerator<string> {
  const entries = await anchored(join(root, below), (place) =>
    readdir(place, { withFileTypes: true }),
  );
  if (entries.some(({ name }) => name === storeMarker)) return;
  for (const entry of entries.sort(byName)) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.name.startsWith('.') || ignoredDirectories.has(entry.name) || choice.exclude(path))
      continue;
    if (entry.isDirectory()) yield* filesBelow(root, path, choice);
    else if (entry.isFile() && choice.extensions.has(extname(entry.name).toLowerCase())) yield path;
  }
}

const byName = (a: Dirent, b: Dirent): number => (a.name < b.name ? -1 : 1);
