import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRecord } from 'millrace/values';
import { serveMcp } from '@millrace/mcp/server';
import { firstValueFrom, ReplaySubject } from 'rxjs';
import { everything, offered } from './everything.js';
import { type Side, unsupported } from './unsupported.js';

/** The versions of the protocol whose requirements the suite knows. */
export const revisions = ['2025-11-25', '2026-07-28'] as const;
export type Revision = (typeof revisions)[number];

/** A scenario of the requirements of a version. */
export interface Scenario {
  readonly side: Side;
  readonly revision: Revision;
  readonly name: string;
  /** The others are extensions, pending, or newer than the version. */
  readonly isRequired: boolean;
}

/** The outcome of a scenario. */
export interface Played extends Scenario {
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
/** The suite imports a function that Node has from version 22. */
const preload = new URL('../dist/glob.js', import.meta.url).href;
const client = fileURLToPath(new URL('../dist/client.js', import.meta.url));

/** The scenarios of a side that the suite plays for a version. */
export const scenariosOf = async (side: Side, revision: Revision): Promise<readonly Scenario[]> => {
  const { output } = await run(['list', '--requirements', revision]);
  const [required = '', others = ''] = output.split('Run and reported');
  const [servers = '', clients = ''] = required.split('Client scenarios');
  const own = side === 'server' ? servers : clients;
  const scenario = (isRequired: boolean) => (found: readonly string[]) => ({
    side,
    revision,
    name: found[1] ?? '',
    isRequired,
  });
  return [
    ...[...own.matchAll(/^\s+- (\S+)$/gm)].map(scenario(true)),
    ...[...others.matchAll(new RegExp(`^\\s+- (\\S+) \\[${side}\\]`, 'gm'))].map(scenario(false)),
  ];
};

/** Plays the scenarios of a side. The servers of those for clients listen on every interface of the machine. */
export const play = async (side: Side, revision: Revision): Promise<readonly Played[]> => {
  const scenarios = await scenariosOf(side, revision);
  const checks = await (side === 'server' ? serverChecks(revision) : clientChecks(revision));
  return scenarios.map((it) => playedAs(it, checks.get(it.name)));
};

type Checks = ReadonlyMap<string, readonly Check[]>;

/** `serveMcp` on 127.0.0.1, in one process. */
const serverChecks = async (revision: Revision): Promise<Checks> => {
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
    return await checksOf([
      'server',
      '--url',
      await firstValueFrom(url$),
      '--requirements',
      revision,
    ]);
  } finally {
    serving.unsubscribe();
  }
};

const clientChecks = (revision: Revision): Promise<Checks> =>
  checksOf(['client', '--command', `${process.execPath} ${client}`, '--requirements', revision]);

const playedAs = (scenario: Scenario, checks: readonly Check[] = []): Played => {
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  const failed = checks.filter(({ status }) => status === 'FAILURE');
  const problems = failed.map(({ description, errorMessage }) => errorMessage || description);
  const all = passed + problems.length === 0 ? ['No check was made.'] : problems;
  const reason = unsupported[scenario.side][scenario.name];
  const isWrong = all.length > 0 === (reason === undefined);
  return { ...scenario, passed, problems: all, reason, isWrong };
};

// ---------------------------------------------------------------- the program of the suite

interface Check {
  readonly status: string;
  readonly description: string;
  readonly errorMessage: string;
}

/** Runs the program, and reads the checks that it has written, by scenario. */
const checksOf = async (argv: readonly string[]): Promise<Checks> => {
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
    return new Map(found);
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
    const child = spawn(process.execPath, ['--import', preload, program, ...argv]);
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    child.on('error', reject).on('close', () => resolve({ output }));
  });
