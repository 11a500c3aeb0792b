import type { Model } from '@millrace/core';
import type { UsageUnit } from './presentation/describe-reply.js';

/** A model that the command can use. */
export interface ModelChoice {
  /** Environment variables that ask for it: one that is set is enough. Without any, it serves where no other does. */
  readonly variables: readonly string[];
  /** The package that it comes from. */
  readonly package: string;
  /** Makes it; absent where the package is not there yet. `pace` is the time between words of a demonstration, in ms. */
  readonly factory?: (pace: number) => Promise<MadeModel>;
}

/** A model, and what a reader must know of it. */
export interface MadeModel {
  readonly model: Model;
  /** What it is, in a few words. */
  readonly about: string;
  /** What it counts its usage in. */
  readonly unit: UsageUnit;
}

/** The model for a run. */
export interface ChosenModel extends MadeModel {
  /** Why it is not the one that was asked for. */
  readonly warnings: readonly string[];
}

/** The models there are, in the order of preference. */
export const modelChoices: readonly ModelChoice[] = [
  { variables: ['OPENAI_API_KEY', 'OPENAI_BASE_URL'], package: '@millrace/openai' },
  { variables: ['ANTHROPIC_API_KEY'], package: '@millrace/anthropic' },
  {
    variables: [],
    package: '@millrace/embedded',
    factory: async (pace) => {
      const { embedded, embeddedDescription } = await import('@millrace/embedded');
      const about = `the embedded model: ${embeddedDescription}`;
      return { model: embedded({ pace }), about, unit: 'words' };
    },
  },
];

/** Chooses the first model that the environment asks for and that is there. What the variables hold is shown nowhere. */
export const chooseModel = async (
  env: Readonly<Record<string, string | undefined>>,
  pace: number,
  choices: readonly ModelChoice[] = modelChoices,
): Promise<ChosenModel> => {
  const set = ({ variables }: ModelChoice): readonly string[] =>
    variables.filter((name) => (env[name] ?? '') !== '');
  const wanted = choices.filter((it) => it.variables.length === 0 || set(it).length > 0);
  const chosen = wanted.find(({ factory }) => factory !== undefined);
  if (chosen?.factory === undefined) throw new Error('There is no model to choose.');
  const passedOver = wanted.slice(0, wanted.indexOf(chosen));
  return {
    ...(await chosen.factory(pace)),
    warnings: passedOver.map((it) => {
      const given = `${set(it).join(' and ')} ${set(it).length === 1 ? 'is' : 'are'} set`;
      return `${given}, but ${it.package} is not there yet: ${chosen.package} answers.`;
    }),
  };
};
