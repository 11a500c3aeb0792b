import { randomUUID } from 'node:crypto';
import { resolve } from 'node:path';
import type { Model } from 'millrace';
import { draining } from 'millrace/journal';
import { type FlowResources, flowAgent } from '@millrace/flow';
import { firstValueFrom, tap } from 'rxjs';
import { answer } from '../answer.js';
import type { Begin } from '../ask.js';
import { chooseModel } from '../choose-model.js';
import type { FlowArguments } from '../command-line/arguments.js';
import { assistantTools } from '../create-assistant.js';
import { exitCodes, wrongUsage } from '../exit-codes.js';
import { givenQuestion$ } from '../given-question.js';
import { introduction, promptSign } from '../presentation/introduction.js';
import { isHumanOutput } from '../presentation/presenter.js';
import { oneLine } from '../presentation/shorten.js';
import { readCosts } from '../read-costs.js';
import type { Setting } from '../setting.js';
import { askPerson } from './ask-person.js';
import { presentLive } from './present-live.js';
import { wrapFor } from '../presentation/wrap.js';

/** Runs a flow with the resources of the command. Resolves to the exit code. */
export const runFlow = async (
  setting: Setting<FlowArguments>,
  document: unknown,
): Promise<number> => {
  const { given, environment, output, theme, errorTheme } = setting;
  const asked = await firstValueFrom(givenQuestion$(given, environment));
  if (asked.type !== 'question') {
    const why = asked.type === 'missing' ? asked.why : 'pass the input of the flow.';
    const text = `error: ${why}\n(for more information: npx @millrace/cli flow run --help)\n`;
    environment.stderr.write(wrapFor(text, errorTheme));
    return wrongUsage;
  }
  const costs = await readCosts(setting);
  const { env, models } = environment;
  const wanted = given.model || env['MILLRACE_MODEL'];
  const name = wanted === '' ? undefined : wanted;
  const chosen = await chooseModel({ env, name, pace: 0 }, models);
  const resources = await resourcesOf(setting, document, chosen.model);
  const calls = draining();
  const agent = flowAgent(document, { ...resources, use: [calls, costs] });
  if (isHumanOutput(given)) {
    const shown = oneLine(asked.text, theme.width - 2, theme);
    output.stream.write(`${introduction(chosen.about, [], theme)}${promptSign(theme)}${shown}\n`);
  }
  const seen = { isWaiting: false };
  const begin: Begin = (options) =>
    agent.stream$(asked.text, options).pipe(
      tap((event) => {
        if (event.type !== 'postCall' || event.parentId !== undefined) return;
        seen.isWaiting = event.reply.reason === 'suspended';
      }),
    );
  const live = given.live && isHumanOutput(given) ? presentLive(document, setting) : undefined;
  const prepared = { agent, calls, durable: undefined, chosen, sample: '', runs: undefined };
  const callId = randomUUID();
  const settled = { ...setting, given: { ...given, ...noAnswerOptions } };
  const outcome = await answer(callId, begin, prepared, settled, live);
  if (outcome !== 'answered' || !seen.isWaiting) return exitCodes[outcome];
  environment.stderr.write('The flow waits for an external result, and cannot be resumed here.\n');
  return 1;
};

const noAnswerOptions = {
  store: false,
  maxIterations: undefined,
  keepDays: undefined,
} as const;

/** The resources of a document here. */
const resourcesOf = async (
  setting: Setting<FlowArguments>,
  document: unknown,
  model: Model,
): Promise<FlowResources> => {
  const { given, environment } = setting;
  const { directory, env } = environment;
  const [{ tools }, { documentRetriever, markdownFiles }, { guardedFetch }] = await Promise.all([
    assistantTools({ directory }),
    import('@millrace/tools'),
    import('@millrace/tools/web'),
  ]);
  const load = markdownFiles(resolve(directory, given.documents));
  const retrievers =
    given.documents === ''
      ? {}
      : mapTo(valuesOf(document, 'retriever_id'), documentRetriever({ load }));
  const secrets = Object.entries(env).flatMap(([name, value]) =>
    name.startsWith(secretPrefix) && value !== undefined
      ? [[name.slice(secretPrefix.length), value] as const]
      : [],
  );
  return {
    models: mapTo(valuesOf(document, 'llm_id'), model),
    tools,
    retrievers,
    http: { fetch: guardedFetch() },
    secrets: Object.fromEntries(secrets),
    human: askPerson(setting),
  };
};

const secretPrefix = 'MILLRACE_SECRET_';

const mapTo = <T>(keys: readonly string[], value: T): Readonly<Record<string, T>> =>
  Object.fromEntries(keys.map((key) => [key, value]));

/** Flows are not nested deeper. */
const maxDepth = 40;

/** All strings at a key, anywhere in a document that is not checked yet. */
const valuesOf = (value: unknown, key: string, depth = 0): readonly string[] => {
  if (typeof value !== 'object' || value === null || depth > maxDepth) return [];
  return Object.entries(value).flatMap(([name, item]: readonly [string, unknown]) =>
    name === key && typeof item === 'string' ? [item] : valuesOf(item, key, depth + 1),
  );
};
