import { type Agent, isMillraceError } from 'millrace';
import { type Drainable, draining, type Journal, journal } from 'millrace/journal';
import { chooseModel, type ChosenModel } from './choose-model.js';
import type { AnswerArguments } from './command-line/arguments.js';
import { createAssistant } from './create-assistant.js';
import { introduction } from './presentation/introduction.js';
import { isHumanOutput } from './presentation/presenter.js';
import type { RunModel } from './runs/run-model.js';
import type { RunStore } from './runs/open-run-store.js';
import { storePlace } from './runs/store-place.js';
import { readCosts } from './read-costs.js';
import type { Setting } from './setting.js';

/** An agent that is ready to answer. */
export interface Prepared {
  readonly agent: Agent;
  /** Drains its calls. */
  readonly calls: Drainable;
  /** Records its calls, if there is a store. */
  readonly durable: Journal | undefined;
  readonly chosen: ChosenModel;
  /** A question that shows its capabilities. */
  readonly sample: string;
  /** The store of its runs, if they are recorded. */
  readonly runs: RunStore | undefined;
}

export interface PrepareOptions {
  /** An open store. Default: opens the store; if that fails, prints a warning and records nothing. */
  readonly runs?: RunStore;
  /** The model that a resumed run has used so far. */
  readonly previousModel?: RunModel | undefined;
}

/** Creates the agent, and prints which model it uses. */
export const prepare = async (
  setting: Setting<AnswerArguments>,
  { runs: open, previousModel }: PrepareOptions = {},
): Promise<Prepared> => {
  const { given, environment, output, theme } = setting;
  // First: a mistake in it must not leave a store open.
  const costs = await readCosts(setting);
  const [chosen, runs] = await Promise.all([
    chosenModel(setting, previousModel),
    open ?? openedOrNone(setting),
    // Preload what the assistant needs.
    import('@millrace/tools'),
  ]);
  const durable = runs && journal(runs.store);
  const calls = durable ?? draining();
  const { directory } = environment;
  const { agent, sample, warnings } = await createAssistant({
    model: chosen.model,
    directory,
    use: [calls, costs],
  });
  if (isHumanOutput(given)) output.stream.write(introduction(chosen.about, warnings, theme));
  return { agent, calls, durable, chosen, sample, runs };
};

/** Milliseconds between the words of the demo model, for human readers. */
const readingPace = 1;

const chosenModel = (
  { given, environment }: Setting<AnswerArguments>,
  before: RunModel | undefined,
): Promise<ChosenModel> => {
  const { env, models } = environment;
  const pace = isHumanOutput(given) ? readingPace : 0;
  if (given.model === '' && before !== undefined) {
    // Only the demo model counts words; an empty environment selects it.
    const own = before.unit === 'words' ? { env: {}, name: undefined } : { env, name: before.name };
    return chooseModel({ ...own, pace }, models);
  }
  const wanted = given.model || env['MILLRACE_MODEL'];
  return chooseModel({ env, name: wanted === '' ? undefined : wanted, pace }, models);
};

const openedOrNone = async ({
  given,
  environment,
  errorTheme,
}: Setting<AnswerArguments>): Promise<RunStore | undefined> => {
  const place = storePlace(given.store, environment);
  if (place.type === 'none') return undefined;
  try {
    const { openToWrite } = await import('./runs/open-run-store.js');
    return await openToWrite(place);
  } catch (error) {
    const why = isMillraceError(error) ? error.message : String(error);
    environment.stderr.write(`${errorTheme.colors.yellow(`Not recorded: ${why}`)}\n`);
    return undefined;
  }
};
