import type { Dirent } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { tool, type Tool, toolOutput, type ToolOutput } from 'millrace';
import { jsonSchema } from 'millrace/schema';
import { anchored } from './anchored.js';
import {
  type ConfinedPath,
  type Confinement,
  confinePath,
  isStore,
  isUnprintable,
} from './confined-path.js';
import { explainFailure } from './explain-failure.js';
import { readText } from './read-text.js';
import { isUnlisted } from './store-database.js';

const maxListed = 500;
const maxMatches = 100;
/** Of a whole search. */
const maxFiles = 5_000;
const maxBytesRead = 50_000_000;
const maxLineLength = 200;

const path = {
  type: 'string',
  minLength: 1,
  maxLength: 1_024,
  description: 'The directory, relative to the root directory. Default: the root directory.',
  examples: ['src', '.'],
} as const;

export const listFiles = (confinement: Confinement): Tool =>
  tool({
    name: 'list_files',
    idempotent: true,
    description:
      'Lists the files of a directory and of those below it. Use it to find out which files exist. Directories end ' +
      'with "/".',
    input: jsonSchema({
      type: 'object',
      properties: {
        path,
        depth: {
          type: 'integer',
          minimum: 1,
          maximum: 20,
          description: 'The number of levels to list. Default: 2.',
        },
      },
      additionalProperties: false,
    }),
    run: ({ path: directory = '.', depth = 2 }, { signal }) =>
      explained(directory, confinement, async (place) => {
        const { isHidden } = confinement;
        const names: string[] = [];
        for await (const entry of entriesBelow(place, { isHidden, depth, ending: '' })) {
          signal.throwIfAborted();
          if (names.push(entry.isDirectory ? `${entry.shown}/` : entry.shown) > maxListed) break;
        }
        return listing(place, names);
      }),
  });

const listing = ({ shown }: ConfinedPath, found: readonly string[]): ToolOutput => {
  const names = found.slice(0, maxListed);
  const note =
    found.length > maxListed ? [`[Only the first ${maxListed}. List a subdirectory.]`] : [];
  const content = names.length === 0 ? ['There are no files.'] : [...names, ...note];
  return toolOutput({
    content: content.join('\n'),
    details: { path: shown, names, isCut: note.length > 0 },
  });
};

export const searchFiles = (confinement: Confinement, maxBytes: number): Tool =>
  tool({
    name: 'search_files',
    idempotent: true,
    description:
      'Searches the lines of all text files of a directory and those below it, for a string or a regular expression. ' +
      'Returns the path, number and text of each matching line.',
    input: jsonSchema({
      type: 'object',
      properties: {
        query: {
          type: 'string',
          minLength: 1,
          maxLength: 500,
          description: 'The string to search for; upper and lower case are different.',
          examples: ['createAgent'],
        },
        isPattern: {
          type: 'boolean',
          description:
            'Whether the query is a regular expression, without look-around and back-references. Default: false.',
        },
        path,
        fileEnding: {
          type: 'string',
          maxLength: 100,
          description: 'Only search files whose names end with this. Default: all files.',
          examples: ['.ts', '.test.ts'],
        },
      },
      required: ['query'],
      additionalProperties: false,
    }),
    run: (
      { query, isPattern = false, path: directory = '.', fileEnding: ending = '' },
      { signal },
    ) =>
      explained(directory, confinement, async (place) => {
        const { isHidden } = confinement;
        const matches = isPattern ? await patternOf(query) : (line: string) => line.includes(query);
        const files = entriesBelow(place, { isHidden, depth: Infinity, ending });
        return found(await search(files, matches, { confinement, maxBytes, signal }), query);
      }),
  });

/** RE2 is loaded on first use. */
const patternOf = async (query: string): Promise<(line: string) => boolean> => {
  const { linearPatterns } = await import('../patterns/linear-patterns.js');
  const pattern = linearPatterns(query);
  return (line) => pattern.test(line);
};

interface Match {
  readonly path: string;
  /** Starts at 1. */
  readonly line: number;
  readonly text: string;
}

interface SearchResult {
  readonly matches: readonly Match[];
  readonly files: number;
  /** The limit that ended the search early. */
  readonly limit?: string;
}

interface SearchRules {
  readonly confinement: Confinement;
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

const search = async (
  entries: AsyncIterable<Entry>,
  isMatch: (line: string) => boolean,
  rules: SearchRules,
): Promise<SearchResult> => {
  const matches: Match[] = [];
  let files = 0;
  let read = 0;
  for await (const { isDirectory, shown } of entries) {
    rules.signal.throwIfAborted();
    if (isDirectory) continue;
    if (files === maxFiles) return { matches, files, limit: `${maxFiles} files` };
    if (read > maxBytesRead) return { matches, files, limit: `${maxBytesRead} characters` };
    const text = await textOrNothing(shown, rules);
    files += 1;
    read += text.length;
    for await (const match of matchesIn(text, shown, isMatch)) {
      if (matches.length === maxMatches) return { matches, files, limit: `${maxMatches} matches` };
      matches.push(match);
    }
  }
  return { matches, files };
};

/** Binary, large and vanished files have no matches. */
const textOrNothing = async (shown: string, { confinement, maxBytes, signal }: SearchRules) => {
  try {
    const place = await confinePath(shown, confinement);
    return await readText(place.real, { name: shown, maxBytes, signal });
  } catch {
    signal.throwIfAborted();
    return '';
  }
};

/** A pattern may take milliseconds per line: the process gets a turn in between. */
async function* matchesIn(
  text: string,
  shown: string,
  isMatch: (line: string) => boolean,
): AsyncGenerator<Match> {
  let turn = performance.now();
  for (const [index, line] of text.split(/\r?\n/u).entries()) {
    if (isMatch(line)) yield { path: shown, line: index + 1, text: line.slice(0, maxLineLength) };
    if (performance.now() - turn < 10) continue;
    await setImmediate();
    turn = performance.now();
  }
}

const found = ({ matches, files, limit }: SearchResult, query: string): ToolOutput => {
  const note = limit === undefined ? '' : ` The search stopped after ${limit}.`;
  const lines = matches.map(({ path: shown, line, text }) => `${shown}:${line}: ${text}`);
  const head =
    lines.length === 0
      ? `No line of ${files} files matches '${query}'.${note}`
      : `${lines.length} lines match.${note}`;
  return toolOutput({ content: [head, ...lines].join('\n'), details: { matches, files, limit } });
};

// ---------------------------------------------------------------- directories

interface Entry {
  /** Relative to the root, separated by `/`. */
  readonly shown: string;
  readonly isDirectory: boolean;
}

interface Walk {
  readonly isHidden: (path: string) => boolean;
  readonly depth: number;
  /** Of the names of files. */
  readonly ending: string;
}

/**
 * The visible files and directories below a directory, sorted by name. Links are listed, but not followed. Directories
 * that cannot be read are skipped.
 */
export async function* entriesBelow(place: ConfinedPath, walk: Walk): AsyncGenerator<Entry> {
  yield* visible(await entriesIn(place.real), place, walk);
}

async function* visible(
  entries: readonly Dirent[],
  { real, shown: above }: ConfinedPath,
  walk: Walk,
): AsyncGenerator<Entry> {
  for (const entry of entries) {
    const shown = above === '' ? entry.name : `${above}/${entry.name}`;
    if (entry.name === 'node_modules' || isUnprintable(entry.name)) continue;
    if (walk.isHidden(shown)) continue;
    const isDirectory = entry.isDirectory();
    if (!isDirectory && !entry.name.endsWith(walk.ending)) continue;
    if (await (isDirectory ? isStore : isUnlisted)(join(real, entry.name))) continue;
    yield { shown, isDirectory };
    if (!isDirectory || walk.depth <= 1) continue;
    const below = { real: join(real, entry.name), shown };
    const inside = await entriesIn(below.real).catch(() => []);
    yield* visible(inside, below, { ...walk, depth: walk.depth - 1 });
  }
}

const entriesIn = async (real: string): Promise<readonly Dirent[]> => {
  const entries = await anchored(real, (directory) => readdir(directory, { withFileTypes: true }));
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
};

const explained = async (
  directory: string,
  confinement: Confinement,
  use: (place: ConfinedPath) => Promise<ToolOutput>,
): Promise<ToolOutput> => {
  try {
    const place = await confinePath(directory, confinement);
    if ((await stat(place.real)).isDirectory()) return await use(place);
    throw new Error(`'${place.shown}' is not a directory.`);
  } catch (error) {
    throw await explainFailure(error, directory, confinement);
  }
};
