import type { CallSummary } from 'millrace/journal';
import type { ChosenModel } from '../choose-model.js';
import type { UsageUnit } from '../presentation/describe-reply.js';

/** The model in the metadata of a run: a resumed run uses the same one. */
export interface RunModel {
  /** A short description. */
  readonly about: string;
  readonly name: string;
  readonly unit: UsageUnit;
}

/** The metadata that records the model of a run. */
export const modelMetadata = ({
  about,
  model,
  unit,
}: ChosenModel): Readonly<Record<string, string>> => ({ about, model: model.name, unit });

/** The model of a run; undefined if it was not recorded. */
export const runModel = (run: CallSummary): RunModel | undefined => {
  const { about, model: name, unit } = ('metadata' in run && run.metadata) || {};
  return typeof about === 'string' && typeof name === 'string'
    ? { about, name, unit: unit === 'words' ? 'words' : 'tokens' }
    : undefined;
};
