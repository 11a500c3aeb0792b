import { type Agent, isMillraceError } from '@millrace/core';
import { type Drainable, draining, type Journal, journal } from '@millrace/core/journal';
import { chooseModel, type ChosenModel } from './choose-model.js';
import type { AnswerArguments } from './command-line/arguments.js';
import { createAssistant } from './create-assistant.js';
import { introduction } from './presentation/introduction.js';
import { isTalk } from './presentation/presenter.js';
import type { RunModel } from './runs/run-model.js';
import type { RunStore } from './runs/open-run-store.js';
import { storePlace } from './runs/store-place.js';
import type { Setting } from './setting.js';

/** An agent that is ready to answer. */
export interface Prepared {
  readonly agent: Agent;
  /** Brings its calls to rest. */
  readonly calls: Drainable;
  /** Records its calls, if there is a store. */
  readonly durable: Journal | undefined;
  readonly chosen: ChosenModel;
  /** A question that shows what it can do. */
  readonly sample: string;
  /** Where its runs are written down, if they are. */
  readonly runs: RunStore | undefined;
}

/** What is known before. */
export interface PrepareOptions {
  /** The store, where it is open. Default: it is opened, and where that fails the agent writes nothing down, and says so. */
  readonly runs?: RunStore;
  /** The model that a run has asked so far. */
  readonly before?: RunModel | undefined;
}

/** Makes the agent, and says first what will answer. */
export const prepare = async (
  setting: Setting<AnswerArguments>,
  { runs: open, before }: PrepareOptions = {},
): Promise<Prepared> => {
  const { given, environment, output, theme } = setting;
  const [chosen, runs] = await Promise.all([
    chosenModel(setting, before),
    open ?? openedOrNone(setting),
    // What the assistant is made with is read from the disk meanwhile.
    import('@millrace/tools'),
  ]);
  const durable = runs && journal(runs.store);
  const calls = durable ?? draining();
  const { directory } = environment;
  const { agent, sample, warnings } = await createAssistant({
    model: chosen.model,
    directory,
    use: [calls],
  });
  if (isTalk(given)) output.stream.write(introduction(chosen.about, warnings, theme));
  return { agent, calls, durable, chosen, sample, runs };
};

/** Milliseconds between the words of the demo model, where somebody may read along. */
const readingPace = 1;

const chosenModel = (
  { given, environment }: Setting<AnswerArguments>,
  before: RunModel | undefined,
): Promise<ChosenModel> => {
  const { env, models } = environment;
  const pace = isTalk(given) ? readingPace : 0;
  if (given.model === '' && before !== undefined) {
    // Only the demo model counts words, and it is what there is without any variable.
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
    environment.stderr.write(`${errorTheme.colors.yellow(`Not written down: ${why}`)}\n`);
    return undefined;
  }
};
