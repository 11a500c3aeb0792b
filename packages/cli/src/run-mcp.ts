import { createHash, timingSafeEqual } from 'node:crypto';
import { parse, resolve } from 'node:path';
import { createAgent, type MillraceError, type Tool } from 'millrace';
import { asTool, type Listening, serveMcp } from '@millrace/mcp/server';
import { EMPTY, endWith, firstValueFrom, ignoreElements, map, merge, tap } from 'rxjs';
import type { Outcome } from './ask.js';
import { chooseModel } from './choose-model.js';
import type { McpArguments } from './command-line/arguments.js';
import { assistantName, assistantTools } from './create-assistant.js';
import { describeError } from './presentation/describe-error.js';
import type { Setting } from './setting.js';

const agentName = 'ask_millrace';

/** Serves the assistant's tools to MCP clients until stdin ends or a signal arrives. Logs go to stderr. */
export const runMcp = async (setting: Setting<McpArguments>): Promise<Outcome> => {
  const { given, environment, errorTheme, debug } = setting;
  const { stdin, stdout, stderr, env, interrupt$, terminate$ = EMPTY } = environment;
  const tools = await servedTools(setting);
  const general = {
    name: assistantName,
    annotations: ({ name }: Tool) => ({
      readOnlyHint: true,
      // The agent may ask a model elsewhere.
      openWorldHint: name === agentName,
    }),
    onError: (error: MillraceError) => {
      stderr.write(`${describeError(error, errorTheme, debug)}\n`);
      // These tools word their errors for models.
      return error.code === 'tool' ? error.message : undefined;
    },
  };
  const serving$ = serveMcp(
    tools,
    given.http === undefined
      ? { ...general, stdio: { input: stdin, output: stdout } }
      : { ...general, http: { port: given.http, ...accessWith(env['MILLRACE_MCP_TOKEN']) } },
  );
  return firstValueFrom(
    merge(
      interrupt$.pipe(map(() => 'interrupted' as const)),
      terminate$.pipe(map(() => 'terminated' as const)),
      serving$.pipe(
        tap((listening) => {
          stderr.write(`${errorTheme.colors.dim(introduction(listening, tools))}\n`);
        }),
        ignoreElements(),
        endWith('answered' as const),
      ),
    ),
  );
};

const servedTools = async ({
  given,
  environment,
  errorTheme,
}: Setting<McpArguments>): Promise<readonly Tool[]> => {
  const { env, models, stderr } = environment;
  const directory = resolve(environment.directory, given.directory);
  const own = await assistantTools({ directory });
  // Clients may start the command in the root, which no one has chosen to share.
  const isRoot = given.directory === '' && parse(directory).root === directory;
  const tools = own.tools.filter(({ name }) => !(isRoot && name === 'read_file'));
  const notes = isRoot ? ['Files cannot be read: choose a directory with --directory.'] : [];
  for (const note of [...own.warnings, ...notes]) {
    stderr.write(`${errorTheme.colors.yellow(note)}\n`);
  }
  if (!given.agent) return tools;
  const wanted = given.model || (env['MILLRACE_MODEL'] ?? '');
  const name = wanted === '' ? undefined : wanted;
  const { model, about } = await chooseModel({ env, name, pace: 0 }, models);
  stderr.write(`${errorTheme.colors.dim(`The agent uses ${about}.`)}\n`);
  const { maxIterations } = given;
  const agent = createAgent({
    name: assistantName,
    model,
    tools,
    ...(maxIterations !== undefined && { limits: { maxIterations } }),
  });
  const abilities = tools.map((tool) => tool.name).join(', ');
  const description = `Asks an agent that answers a question in several steps. Its tools: ${abilities}.`;
  return [...tools, asTool(agent, { name: agentName, description })];
};

const introduction = (listening: Listening, tools: readonly Tool[]): string => {
  const names = tools.map(({ name }) => name).join(', ');
  const where = listening.transport === 'http' ? `at ${listening.url}` : 'over stdin and stdout';
  return `Serving MCP ${where}: ${names}.`;
};

/** Clients that know the token may connect; without one, every program of this machine. */
const accessWith = (token = '') =>
  token === ''
    ? {}
    : { authorize: (given = '') => timingSafeEqual(digestOf(given), digestOf(token)) };

const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
