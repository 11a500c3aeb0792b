import { chatPage } from '@millrace/chat-page';
import { a2a } from '@millrace/a2a/server';
import type { Devtools } from '@millrace/devtools';
import { createAgent } from 'millrace';
import { type CallStore, journal } from 'millrace/journal';
import { agUi } from '@millrace/server/ag-ui';
import type { AccessEntry, ChatServerOptions } from '@millrace/server/chat';
import { serve } from '@millrace/server/node';
import { openAi } from '@millrace/server/openai';
import { catchError, concat, EMPTY, firstValueFrom, map, merge, of, switchMap, take } from 'rxjs';
import type { Outcome } from './ask.js';
import { chooseModel } from './choose-model.js';
import type { ServeArguments } from './command-line/arguments.js';
import { assistantTools } from './create-assistant.js';
import { describeError } from './presentation/describe-error.js';
import { readCosts } from './read-costs.js';
import { openToWrite } from './runs/open-run-store.js';
import { describePlace, storePlace } from './runs/store-place.js';
import type { Setting } from './setting.js';

/** Not that of the other commands: a server resumes the calls of its agent, and must not resume their runs. */
export const chatAgentName = 'millrace-chat';

/** As long as the other commands keep their runs. */
const keepCallsMs = 30 * 86_400_000;

/** Serves the assistant to chat clients until a signal arrives. Logs go to stderr. */
export const runServe = async (setting: Setting<ServeArguments>): Promise<Outcome> => {
  const { given, environment, errorTheme, debug } = setting;
  const { env, models, stderr, interrupt$, terminate$ = EMPTY } = environment;
  // First: a mistake in it must not leave a store open.
  const costs = await readCosts(setting);
  const print = (text: string): void => void stderr.write(`${errorTheme.colors.dim(text)}\n`);
  const { tools, warnings } = await assistantTools({ directory: environment.directory });
  warnings.forEach((warning) => stderr.write(`${errorTheme.colors.yellow(warning)}\n`));
  const wanted = given.model || (env['MILLRACE_MODEL'] ?? '');
  const name = wanted === '' ? undefined : wanted;
  const { model, about } = await chooseModel({ env, name, pace: 30 }, models);
  const { maxIterations } = given;
  const limits = maxIterations === undefined ? {} : { limits: { maxIterations } };
  const plain = createAgent({ name: chatAgentName, model, tools, use: costs, ...limits });

  const place = storePlace(given.store, environment);
  const kept = place.type === 'none' ? undefined : await openToWrite(place);
  const devtools = given.devtools ? await openDevtools(stderr, kept?.store) : undefined;
  const agent = devtools?.inspect(plain) ?? plain;
  const devtoolsUrl = devtools && (await addressOf(devtools));
  const options: ChatServerOptions = {
    ...(kept && { store: { calls: kept.store, sessions: kept.sessions }, keepCallsMs }),
    protocols: [
      agUi(),
      a2a(),
      openAi(),
      ...(given.page ? [chatPage({ title: 'Millrace', uncertain: 'user', devtoolsUrl })] : []),
    ],
    onError: (error) => void stderr.write(`${describeError(error, errorTheme, debug)}\n`),
    onAccess: (entry) => {
      print(lineOf(entry));
    },
  };
  const where = kept === undefined ? 'in memory only' : `in ${describePlace(kept.place)}`;
  const served$ = serve(agent, { ...options, port: given.port, signals: [] });
  const signal$ = merge(
    interrupt$.pipe(map((): Outcome => 'interrupted')),
    terminate$.pipe(map((): Outcome => 'terminated')),
  );
  const outcome$ = served$.pipe(
    switchMap(({ url, close$ }) => {
      if (given.page) stderr.write(`Chat page: ${url}\n`);
      print(`Serving chats at ${url}/api/chat with ${about}. Conversations are kept ${where}.`);
      return signal$.pipe(
        take(1),
        // The second signal does not wait.
        switchMap((outcome) => {
          print('Shutting down: running calls finish their current step.');
          return merge(concat(close$, of(outcome)), signal$);
        }),
      );
    }),
  );
  try {
    return await firstValueFrom(outcome$);
  } finally {
    devtools?.close();
    await kept?.close();
  }
};

/** The devtools of the server, also in production: the option asks for them. */
const openDevtools = async (
  stderr: Setting['environment']['stderr'],
  store: CallStore | undefined,
): Promise<Devtools> => {
  const { createDevtools } = await import('@millrace/devtools');
  return createDevtools({
    enabled: true,
    keepOpen: true, // each answer of the chat page links to its call
    title: 'Millrace',
    print: (line) => void stderr.write(`${line}\n`),
    ...(store === undefined ? { forks: true } : { journal: journal(store) }),
  });
};

/** Devtools that cannot listen have printed why, and the chats are served without them. */
const addressOf = ({ address$ }: Devtools): Promise<string | undefined> =>
  firstValueFrom(address$.pipe(catchError(() => EMPTY)), { defaultValue: undefined });

const lineOf = ({ method, path, status, ms, callId }: AccessEntry): string =>
  [method, path, status, `${Math.round(ms)} ms`, callId ?? ''].join(' ').trimEnd();
