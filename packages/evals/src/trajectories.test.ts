import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from '@jest/globals';
import { createAgent, type Model, replies, tool } from 'millrace';
import { createCallStore, inProcessCalls, journal, replay$ } from 'millrace/journal';
import { cassette, scriptedModel, text, toolCall } from 'millrace/testing';
import { lastValueFrom, throwError } from 'rxjs';
import {
  calledTools,
  type EvalCase,
  type EvalTarget,
  evaluate,
  type EvaluateOptions,
  summary,
} from './index.js';

const directory = mkdtempSync(join(tmpdir(), 'millrace-trajectories-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const clock = tool({ name: 'clock', description: 'Time.', run: () => '12:00' });

const summaryOf = (target: EvalTarget, cases: readonly EvalCase[], options?: EvaluateOptions) =>
  lastValueFrom(
    evaluate(target, cases, { tools: calledTools(['clock']) }, options).pipe(summary()),
  );

it('scores recorded calls: the trajectory of a journal, without calling anything', async () => {
  const store = createCallStore(inProcessCalls());
  const model = scriptedModel([toolCall('clock')], [text('Noon.')]);
  const recorded = createAgent({ model, tools: [clock], use: [journal(store)] });
  await recorded.call('What time is it?', { callId: 'noon' });
  const target = (id: unknown) => replay$(store, String(id), { speed: Infinity }).pipe(replies());
  const result = await summaryOf(target, [{ input: 'noon' }, { input: 'lost' }]);
  expect(result.cases.map(({ passRate, errors }) => [passRate, errors])).toEqual([
    [1, 0],
    [0, 1],
  ]);
  expect(model.requests).toHaveLength(2);
});

it('scores the trajectory of a cassette: the recorded model calls the tools of today', async () => {
  const file = join(directory, 'noon.json');
  const cases = ['What time is it?', 'And now?'].map((input) => ({ input }));
  const script = [[toolCall('clock')], [text('Noon.')], [text('As before.')]];
  const agentOf = (model: Model) => createAgent({ model, tools: [clock] });
  const first = await summaryOf(
    agentOf(cassette(file, scriptedModel(...script), { mode: 'record' })),
    cases,
    // Of the script, not of the cassette.
    { concurrency: 1 },
  );
  const never: Model = {
    ...scriptedModel(),
    stream$: () => throwError(() => new Error('The model was asked.')),
  };
  const replaying = () => cassette(file, never, { mode: 'replay' });
  const played = replaying();
  const second = await summaryOf(agentOf(played), cases, { concurrency: 2 });
  const shown = (result: typeof first) =>
    result.cases.map(({ id, passRate, trials }) => [id, passRate, trials[0]?.reply?.toolCalls]);
  expect(shown(second).map(([id, rate]) => [id, rate])).toEqual([
    ['What time is it?', 1],
    ['And now?', 0],
  ]);
  expect(second.scores).toEqual(first.scores);
  expect(second.cases[0]?.trials[0]?.reply?.toolCalls).toMatchObject([
    { name: 'clock', output: '12:00' },
  ]);
  played.verify();

  // Another prompt is another trajectory: it fails, and says why.
  const third = await summaryOf(
    createAgent({ ...{ tools: [clock], instructions: 'Be brief.' }, model: replaying() }),
    cases,
  );
  expect([third.passRate, third.errors]).toEqual([0, 2]);
  expect(third.cases[0]?.trials[0]?.error?.message).toContain('Be brief.');
});
