import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastValueFrom } from 'rxjs';
import { isMillraceError, type Reply } from '../index.js';
import { isRecord } from '../values/json.js';
import { sessions } from '../layers/sessions/index.js';
import { inProcessCalls } from './index.js';
import { type SampleJournal, sampleProcess } from './sample-journals.test-support.js';
import { write } from './stored-calls.test-support.js';

const names = ['finished', 'cut-in-a-tool', 'cut-below', 'informed', 'interrupted', 'suspended'];

const samples = new Map(
  names.map((name) => {
    const path = join(import.meta.dirname, `../../corpus/format-1/journals/${name}.json`);
    return [name, (JSON.parse(readFileSync(path, 'utf8')) as SampleJournal).calls];
  }),
);
const read = (name: string): SampleJournal['calls'] => samples.get(name) ?? {};

type Path = readonly string[];

/** The places of a value, and of what is in it. */
const placesIn = (value: unknown, path: Path = []): readonly Path[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([key, part]) => [
        [...path, key],
        ...placesIn(part, [...path, key]),
      ])
    : [];

/** Values of another type; `undefined` is a field that is missing. */
const others: readonly unknown[] = [undefined, null, 7, {}];

const withOther = (value: unknown, [key, ...rest]: Path, other: unknown): unknown => {
  if (key === undefined) return other;
  const changed = (part: unknown) => withOther(part, rest, other);
  if (Array.isArray(value)) {
    return value.map((part: unknown, at) => (String(at) === key ? changed(part) : part));
  }
  return isRecord(value) ? { ...value, [key]: changed(value[key]) } : value;
};

/** Each place in a step of the samples, once for all steps of a kind. */
const places = [
  ...new Map(
    names.flatMap((name) =>
      (read(name)['c'] ?? []).flatMap(({ kind, name: step, value }, index) =>
        (kind === 'step' ? placesIn(value) : []).map((path) => [
          [step, ...path].join('/').replaceAll(/\d+/gu, '#'),
          { name, index, path },
        ]),
      ),
    ),
  ),
] as const;

interface Other {
  readonly name: string;
  readonly index: number;
  readonly path: Path;
  readonly other: unknown;
}

/** Resumes a call whose process has stopped after the record. */
const resumed = async ({ name, index, path, other }: Other): Promise<Reply> => {
  const driver = inProcessCalls(() => 0);
  for (const [callId, records] of Object.entries(read(name))) {
    const written = records.map(({ value, ...record }, at) => ({
      ...record,
      text: JSON.stringify(callId === 'c' && at === index ? withOther(value, path, other) : value),
    }));
    await write(driver, callId, callId === 'c' ? written.slice(0, index + 1) : written);
  }
  const { agent, informed, durable } = sampleProcess({ question: name, driver });
  const target = name === 'informed' ? informed : agent;
  const isOfSession = name === 'interrupted' || name === 'suspended';
  return lastValueFrom(durable.resume$(isOfSession ? sessions(target).open('s') : target, 'c'));
};

describe('S6: a field of a record of another form', () => {
  it.each(places)('is refused by a typed error, or read: %s', async (_, place) => {
    for (const other of others) {
      const outcome = await resumed({ ...place, other }).catch((error: unknown) => error);
      if (outcome instanceof Error) {
        // Options and inputs are checked as those of a program.
        expect(isMillraceError(outcome) ? outcome.code : outcome).toMatch(
          /^(?:invalidState|invalidResume|invalidRequest|invalidResponse|config|conflict)$/u,
        );
      } else expect(outcome).toMatchObject({ reason: expect.any(String) });
    }
  });
});
