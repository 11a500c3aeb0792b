import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRecord } from '@millrace/core/values';
import { serveMcp } from '@millrace/mcp/server';
import { firstValueFrom, ReplaySubject } from 'rxjs';
import { everything, offered } from './everything.js';
import { type Side, unsupported } from './unsupported.js';

/** The outcome of a scenario. */
export interface Played {
  readonly side: Side;
  readonly name: string;
  readonly passed: number;
  /** The checks that failed. */
  readonly problems: readonly string[];
  /** Why it is expected to fail. */
  readonly reason: string | undefined;
  /** It passed although it is expected to fail, or the reverse. */
  readonly isWrong: boolean;
}

const program = join(
  createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json'),
  '../dist/index.js',
);
const client = fileURLToPath(new URL('../dist/client.js', import.meta.url));

/** The names of all scenarios of a side. */
export const scenariosOf = async (side: Side): Promise<readonly string[]> => {
  const { output } = await run(['list', `--${side}`]);
  return [...output.matchAll(/^\s+- (\S+)$/gm)].map(([, name = '']) => name);
};

/** Plays scenarios for servers against `serveMcp` on 127.0.0.1, in one process. */
export const playServer = async (names: readonly string[]): Promise<readonly Played[]> => {
  const url$ = new ReplaySubject<string>(1);
  const serving = serveMcp(everything, {
    ...offered,
    name: 'everything',
    http: { port: 0 },
  }).subscribe({
    next: (it) => url$.next(it.transport === 'http' ? it.url : ''),
    error: (error: unknown) =>
      url$.error(error instanceof Error ? error : new Error(String(error))),
  });
  try {
    const url = await firstValueFrom(url$);
    const suite = ['server', '--url', url, '--suite', 'all'];
    return await withResults(suite, (checks) =>
      names.map((name) => playedAs('server', name, checks.get(name))),
    );
  } finally {
    serving.unsubscribe();
  }
};

/** Plays a scenario for clients. Its servers listen on every interface of the machine. */
export const playClient = (name: string): Promise<Played> =>
  withResults(
    ['client', '--command', `${process.execPath} ${client}`, '--scenario', name],
    (checks) => playedAs('client', name, checks.get(name)),
  );

const playedAs = (side: Side, name: string, checks: readonly Check[] = []): Played => {
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  const failed = checks.filter(({ status }) => status === 'FAILURE');
  const problems = failed.map(({ description, errorMessage }) => errorMessage || description);
  const all = passed + problems.length === 0 ? ['No check was made.'] : problems;
  const reason = unsupported[side][name];
  const isWrong = all.length > 0 === (reason === undefined);
  return { side, name, passed, problems: all, reason, isWrong };
};

// ---------------------------------------------------------------- the program of the suite

interface Check {
  readonly status: string;
  readonly description: string;
  readonly errorMessage: string;
}

/** Runs the program, and reads the checks that it has written, by scenario. */
const withResults = async <T>(
  argv: readonly string[],
  read: (checks: ReadonlyMap<string, readonly Check[]>) => T,
): Promise<T> => {
  const directory = await mkdtemp(join(tmpdir(), 'mcp-suite-'));
  try {
    const { output } = await run([...argv, '--output-dir', directory]);
    const files = await readdir(directory, { recursive: true });
    const found = await Promise.all(
      files
        .filter((file) => file.endsWith('checks.json'))
        .map(async (file) => [scenarioOf(file), await checksIn(join(directory, file))] as const),
    );
    if (found.length === 0) throw new Error(`The suite wrote no results:\n${output}`);
    return read(new Map(found));
  } finally {
    await rm(directory, { recursive: true });
  }
};

/** `auth/basic-2026-11-26T…/checks.json` is of the scenario `auth/basic`. */
const scenarioOf = (file: string): string =>
  file
    .replaceAll('\\', '/')
    .replace(/-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/, '')
    .replace(/^server-(?=.)/, '');

const checksIn = async (file: string): Promise<readonly Check[]> => {
  const checks: unknown = JSON.parse(await readFile(file, 'utf8'));
  return Array.isArray(checks) ? checks.filter(isRecord).map(checkOf) : [];
};

const checkOf = (check: Readonly<Record<string, unknown>>): Check => {
  const textOf = (key: string): string => (typeof check[key] === 'string' ? check[key] : '');
  return {
    status: textOf('status'),
    description: textOf('description'),
    errorMessage: textOf('errorMessage'),
  };
};

const run = (argv: readonly string[]): Promise<{ readonly output: string }> =>
  new Promise((resolve, reject) => {
    let output = '';
    const child = spawn(process.execPath, [program, ...argv]);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    child.on('error', reject).on('close', () => resolve({ output }));
  });
