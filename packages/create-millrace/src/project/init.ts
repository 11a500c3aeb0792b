import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { filesOf, type Project, type Provider, providers } from './files.js';

type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean | undefined };
type Output = NodeJS.WritableStream & { readonly isTTY?: boolean | undefined };

/** The streams and variables of the command. */
export interface InitEnvironment {
  /** How the user calls it, for its help. */
  readonly command: string;
  readonly argv: readonly string[];
  readonly stdin: Input;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The working directory. */
  readonly directory: string;
}

/** Writes a project with an agent, asks in a terminal for what is not given, and installs it. Resolves to the exit code. */
export const init = async (environment: InitEnvironment): Promise<number> => {
  const { stderr, stdout, command } = environment;
  try {
    const given = parse(environment);
    if (given.help) {
      stdout.write(helpOf(command));
      return 0;
    }
    return await create(await withAnswers(given, environment), environment);
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    if (error.message !== '') stderr.write(`error: ${error.message}\n`);
    if (error.code === 2) stderr.write(`(for more information: ${command} --help)\n`);
    return error.code;
  }
};

/** Ends the command with an exit code: 1 failed, 2 wrong usage, 130 interrupted. */
class Stop extends Error {
  readonly code: 1 | 2 | 130;
  constructor(code: Stop['code'], message: string) {
    super(message);
    this.code = code;
  }
}

// ---------------------------------------------------------------- arguments

interface Given {
  /** Relative to the working directory; undefined if not given. */
  readonly folder: string | undefined;
  readonly name: string | undefined;
  readonly provider: Provider | undefined;
  readonly yes: boolean;
  readonly install: boolean;
  readonly force: boolean;
  /** A folder with tarballs of the packages; undefined for those of the registry. */
  readonly packages: string | undefined;
  readonly help: boolean;
}

const helpOf = (command: string): string => `Usage: ${command} [folder] [options]

Writes a project with an agent, a typed tool and a test, and installs what it needs. In a terminal, it
asks for what is not given.

Options:
  --provider <name>    the model: ${providerNames.join(', ')} (default: demo, a set of rules without a key)
  --name <name>        the name of the project (default: that of the folder)
  --yes                ask nothing: use the defaults
  --no-install         write the files only
  --force              overwrite existing files
  --packages <folder>  use the tarballs in this folder instead of the registry (default: MILLRACE_PACKAGES)
  --help               print this help

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

  $ ${command} my-agent
  $ ${command} my-agent ${command.startsWith('npm ') ? '-- ' : ''}--yes --provider openai --no-install
`;

const providerNames = Object.keys(providers);
const isProvider = (name: string): name is Provider => Object.hasOwn(providers, name);
const defaultFolder = 'my-agent';

const parse = ({ argv, env, command }: InitEnvironment): Given => {
  const { values, positionals } = parsed(argv);
  const [folder, ...more] = positionals;
  const { name, provider, packages = env['MILLRACE_PACKAGES'] } = values;
  if (more.length > 0) {
    // npm keeps options for itself unless they follow `--`.
    const hint = command.startsWith('npm') ? `; write options after --: ${command} -- --yes` : '';
    throw new Stop(2, `give one folder, not ${positionals.join(' and ')}${hint}`);
  }
  if (provider !== undefined && !isProvider(provider)) {
    throw new Stop(2, `there is no provider '${provider}': choose ${providerNames.join(', ')}`);
  }
  if (name !== undefined && !isName.test(name)) throw new Stop(2, nameRule(name));
  return {
    folder,
    name,
    provider,
    yes: values.yes === true,
    install: values['no-install'] !== true,
    force: values.force === true,
    packages: packages === '' ? undefined : packages,
    help: values.help === true,
  };
};

const parsed = (argv: readonly string[]) => {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        provider: { type: 'string' },
        name: { type: 'string' },
        yes: { type: 'boolean', short: 'y' },
        'no-install': { type: 'boolean' },
        force: { type: 'boolean' },
        packages: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    throw new Stop(2, error instanceof Error ? error.message : String(error));
  }
};

/** The rule of npm for names without a scope. */
const isName = /^[a-z0-9][a-z0-9._-]{0,213}$/;
const nameRule = (name: string): string =>
  `'${name}' is not a name for npm: use lower-case letters, digits and hyphens`;

const nameFor = (folder: string): string => {
  const name = basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '');
  return name === '' ? defaultFolder : name;
};

// ---------------------------------------------------------------- questions

interface Answered extends Given {
  readonly folder: string;
  readonly provider: Provider;
}

const withAnswers = async (given: Given, environment: InitEnvironment): Promise<Answered> => {
  const { stdin, stdout } = environment;
  const { folder = given.name ?? defaultFolder, provider = 'demo' } = given;
  const isAsking = !given.yes && stdin.isTTY === true && stdout.isTTY === true;
  if (!isAsking) return { ...given, folder, provider };
  const reader = createInterface({ input: stdin, output: stdout });
  const left = new AbortController();
  const leave = (): void => left.abort();
  reader.once('SIGINT', leave).once('close', leave);
  const ask = async (text: string): Promise<string> =>
    (await reader.question(text, { signal: left.signal })).trim();
  try {
    return {
      ...given,
      folder: given.folder ?? ((await ask(`Folder (${folder}): `)) || folder),
      provider: given.provider ?? (await askProvider(ask, stdout)),
    };
  } catch (error) {
    if (left.signal.aborted) {
      stdout.write('\n');
      throw new Stop(130, '');
    }
    throw error;
  } finally {
    reader.close();
  }
};

const askProvider = async (
  ask: (text: string) => Promise<string>,
  stdout: Output,
): Promise<Provider> => {
  const entries = Object.entries(providers);
  stdout.write(entries.map(([, { about }], index) => `  ${index + 1}  ${about}\n`).join(''));
  const answer = (await ask('Model (1): ')) || '1';
  const chosen = entries[Number(answer) - 1]?.[0] ?? answer.toLowerCase();
  if (isProvider(chosen)) return chosen;
  stdout.write(`Choose a number from 1 to ${entries.length}.\n`);
  return askProvider(ask, stdout);
};

// ---------------------------------------------------------------- the project

const create = async (given: Answered, environment: InitEnvironment): Promise<number> => {
  const { directory, stdout, stderr, env } = environment;
  const { provider, force, install } = given;
  const folder = resolve(directory, given.folder);
  const name = given.name ?? nameFor(folder);
  const files = Object.entries(
    filesOf({ name, provider, ...sourceOf(given.packages, directory) }),
  ).map(([path, text]) => ({ path, text, file: join(folder, path) }));
  const existing = files.filter(({ file }) => existsSync(file)).map(({ path }) => path);
  if (existing.length > 0 && !force) {
    throw new Stop(
      1,
      `${folder} has ${existing.join(', ')} already. Choose another folder, or overwrite them with --force.`,
    );
  }
  for (const { file, text } of files) await written(file, text, force);
  const shown = relative(directory, folder) || '.';
  stdout.write(`Created ${name} in ${shown}:\n${files.map(({ path }) => `  ${path}\n`).join('')}`);

  const manager = managerOf(env);
  const enter = shown === '.' ? [] : [`cd ${quoted(shown)}`];
  const next = (commands: readonly string[]): string =>
    `\nNext:\n${[...enter, ...commands, `${manager} start`, `${manager} test`].map((line) => `  ${line}\n`).join('')}`;
  const { setUp } = providers[provider];
  const later = next([`${manager} install`, ...setUp]);
  if (!install) {
    stdout.write(later);
    return 0;
  }
  stdout.write(`\nInstalling with ${manager} …\n`);
  if ((await installed(manager, folder)) !== 0) {
    stderr.write(`error: ${manager} install failed. The files are complete.\n${later}`);
    return 1;
  }
  stdout.write(next(setUp));
  return 0;
};

/** Creates a file, and never replaces another one without `force`. */
const written = async (file: string, text: string, force: boolean): Promise<void> => {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw new Stop(1, error instanceof Error ? error.message : String(error));
  }
};

/** The packages of Millrace: ranges for the registry, or tarballs. */
const sourceOf = (
  packages: string | undefined,
  directory: string,
): Pick<Project, 'range' | 'tarballs'> => {
  const range = `^${version()}`;
  if (packages === undefined) return { range, tarballs: {} };
  const folder = resolve(directory, packages);
  const tarballs = Object.fromEntries(tarballsIn(folder));
  if (!Object.hasOwn(tarballs, 'millrace')) {
    throw new Stop(2, `there is no tarball of millrace in ${folder}: pack it with npm run pack`);
  }
  return { range, tarballs };
};

const tarballsIn = (folder: string): readonly (readonly [string, string])[] => {
  const files = existsSync(folder) ? readdirSync(folder) : [];
  return files.flatMap((file) => {
    const [, name] = /^(millrace|create-millrace|millrace-[a-z0-9-]+?)-\d.*\.tgz$/.exec(file) ?? [];
    if (name === undefined) return [];
    return [[name.replace(/^millrace-/, '@millrace/'), `file:${join(folder, file)}`] as const];
  });
};

const version = (): string => {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return String(Reflect.get(Object(manifest), 'version'));
};

// ---------------------------------------------------------------- installation

/** The package manager that started this process. */
const managerOf = (env: InitEnvironment['env']): string =>
  /^(npm|pnpm|yarn)\//.exec(env['npm_config_user_agent'] ?? '')?.[1] ?? 'npm';

const installed = (manager: string, folder: string): Promise<number> =>
  new Promise((done) => {
    const options = { cwd: folder, shell: process.platform === 'win32', stdio: 'inherit' } as const;
    spawn(manager, ['install'], options)
      .once('error', () => done(127))
      .once('close', (code) => done(code ?? 1));
  });

const quoted = (path: string): string => (/^[\w./\\@-]+$/.test(path) ? path : JSON.stringify(path));
