import { describe, expect, it } from '@jest/globals';
import { lastValueFrom, type Observable, toArray } from 'rxjs';
import { toAgUi, toUiMessageStream } from './index.js';
import {
  answerAmong,
  answerIn,
  complaintsOf,
  forInstalled,
  isValidMessage,
  readAsAgUi,
  readAsAiSdk,
  refusedChunks,
} from './read-as-client.test-support.js';
import { scenarios, secret } from './scenarios.test-support.js';

const all = <T>(value$: Observable<T>): Promise<readonly T[]> =>
  lastValueFrom(value$.pipe(toArray()));

describe('I9: in every case, a client ends up with the text of the reply', () => {
  it.each(scenarios)('AI SDK: $name', async ({ stream$, answer, error }) => {
    const chunks = await all(stream$().pipe(await forInstalled()));
    expect(await refusedChunks(chunks)).toEqual([]);
    const { message, errors } = await readAsAiSdk(chunks);
    expect(errors).toEqual(error === undefined ? [] : [`Error: ${error}`]);
    expect(answer === undefined ? undefined : answerIn(message)).toBe(answer);
    expect(await isValidMessage(message)).toBe(true);
  });

  it.each(scenarios)('AG-UI: $name', async ({ stream$, answer, error }) => {
    const events = await all(stream$().pipe(toAgUi()));
    expect(complaintsOf(events)).toEqual([]);
    const run = await readAsAgUi(events);
    expect(run.errors).toEqual(error === undefined ? [] : [error]);
    expect(answer === undefined ? undefined : answerAmong(run)).toBe(answer);
  });
});

describe('X10: nothing that an error or its cause says reaches a client', () => {
  it.each(scenarios.filter(({ name }) => !name.includes('edited')))(
    '$name',
    async ({ stream$ }) => {
      const chunks = await all(stream$({ callId: 'c' }).pipe(toUiMessageStream()));
      const events = await all(stream$({ callId: 'c' }).pipe(toAgUi()));
      expect(JSON.stringify([chunks, events])).not.toContain(secret);
    },
  );
});
