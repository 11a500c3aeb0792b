import { isRecord, parsedJson } from 'millrace/values';
import type { CallStore } from 'millrace/journal';
import { defaultIfEmpty, map, mergeMap, type Observable, take } from 'rxjs';
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

/** Emits the model of a run; undefined if it was not recorded. */
export const runModel$ = (
  { driver }: Pick<CallStore, 'driver'>,
  callId: string,
): Observable<RunModel | undefined> =>
  driver.read$(callId, { kind: 'step' }).pipe(
    mergeMap((records) => records),
    take(1),
    map(({ text }) => modelIn(parsedJson(text))),
    defaultIfEmpty(undefined),
  );

const modelIn = (beginning: unknown): RunModel | undefined => {
  const options = isRecord(beginning) ? beginning['options'] : undefined;
  const metadata = isRecord(options) ? options['metadata'] : undefined;
  if (!isRecord(metadata)) return undefined;
  const { about, model: name, unit } = metadata;
  return typeof about === 'string' && typeof name === 'string'
    ? { about, name, unit: unit === 'words' ? 'words' : 'tokens' }
    : undefined;
};
