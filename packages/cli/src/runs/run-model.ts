import { isRecord, parsedJson } from '@millrace/core/adapter';
import type { StoreOfCalls } from '@millrace/core/journal';
import { defaultIfEmpty, map, mergeMap, type Observable, take } from 'rxjs';
import type { ChosenModel } from '../choose-model.js';
import type { UsageUnit } from '../presentation/describe-reply.js';

/** What a run tells of the model that it asks: whoever goes on with it asks the same one. */
export interface RunModel {
  /** What it is, in a few words. */
  readonly about: string;
  readonly name: string;
  readonly unit: UsageUnit;
}

/** Notes the model in the metadata of a run. */
export const modelMetadata = ({
  about,
  model,
  unit,
}: ChosenModel): Readonly<Record<string, string>> => ({ about, model: model.name, unit });

/** Emits the model that a run asks; nothing where that was not noted. */
export const runModel$ = (
  { driver }: StoreOfCalls,
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
